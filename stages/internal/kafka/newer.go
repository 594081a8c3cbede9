package kafka

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/stages/internal/status"
)

// noteNewer is what a stage says of itself while it waits to be upgraded.
const noteNewer = "newer record schema"

// newer says whether a record was written by a later version than this one can read, and
// tells people. Such a record is sound: the stage waits before it, to be upgraded, rather
// than give up what is in flight.
func (c ClusterConfig) newer(r *kgo.Record, err error) error {
	if !errors.Is(err, codec.ErrNewerSchema) {
		return nil
	}
	err = fmt.Errorf("paused before %s partition %d offset %d: %w", c.short(r.Topic), r.Partition, r.Offset, err)
	c.Status.Note(noteNewer, status.Note{Text: err.Error()})
	return err
}
