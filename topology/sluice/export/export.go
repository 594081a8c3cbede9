// Package export copies recorded topics into an archive, from which they can be replayed
// and where retention does not reach them.
//
// It reads topics partition by partition, up to where they ended when it began, and
// writes an archive (package schemas/archive) that comes into being whole or not at all.
// Nothing in Kafka changes.
package export

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/schemas/archive"
	"github.com/sluice-rl/sluice/schemas/archive/topic"
)

// DefaultTopics are what a replay needs: trajectories with their scores, what became of
// their groups, and batches.
var DefaultTopics = []string{"scored", "grouped", "ppo-batches"}

// Config says what goes where.
type Config struct {
	Client    *kgo.Client // made with topic.Options
	Namespace string
	Topics    []string
	Select    archive.Selection
	// Dir must not exist or be empty; Format is archive.JSONL or archive.Parquet.
	Dir, Format string
	// Progress is told after each thousand records and at a topic's end.
	Progress func(Progress)
}

// Progress counts the records of a topic that were read and written so far. Total may
// count too much, by markers of transactions.
type Progress struct {
	Topic                string
	Read, Written, Total int64
}

// Run writes the archive and returns the counts of each topic.
func Run(ctx context.Context, cfg Config) (all []Progress, err error) {
	w, err := archive.Create(cfg.Dir, cfg.Format)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Abort())
		}
	}()
	for _, name := range cfg.Topics {
		p, err := cfg.copy(ctx, w, name)
		if err != nil {
			return all, err
		}
		all = append(all, p)
	}
	return all, w.Close()
}

func (cfg Config) copy(ctx context.Context, w *archive.Writer, name string) (Progress, error) {
	sel := cfg.Select
	if name != "scored" && name != "trajectories" {
		// Offsets and the end of a range of time are said of the trajectories: what
		// closes them comes later, at other offsets.
		sel.Offsets, sel.Before = nil, time.Time{}
	}
	bounds, err := topic.Range(ctx, cfg.Client, cfg.Namespace+name, sel)
	if err != nil {
		return Progress{}, err
	}
	if err := w.Begin(name); err != nil {
		return Progress{}, err
	}
	p := Progress{Topic: name, Total: bounds.Records()}
	err = topic.Read(ctx, cfg.Client, cfg.Namespace, name, bounds, nil, func(r archive.Record) error {
		if p.Read++; p.Read%1000 == 0 {
			cfg.Progress(p)
		}
		if !sel.Placed(r) || !sel.Said(r) {
			return nil
		}
		p.Written++
		return w.Write(r)
	})
	if err != nil {
		return p, fmt.Errorf("export %s: %w", name, err)
	}
	cfg.Progress(p)
	return p, nil
}
