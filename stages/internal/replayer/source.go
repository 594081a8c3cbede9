package replayer

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/schemas/archive"
	"github.com/sluice-rl/sluice/schemas/archive/topic"
	"github.com/sluice-rl/sluice/stages/internal/runner"
)

// KafkaSource reads a cluster's topics.
type KafkaSource struct {
	client    *kgo.Client
	namespace string
}

// NewKafkaSource makes a source of the topics in the cluster's namespace.
func NewKafkaSource(cluster runner.ClusterConfig) (*KafkaSource, error) {
	cl, err := runner.NewClient(cluster, "replay", "replay-source", topic.Options()...)
	if err != nil {
		return nil, err
	}
	return &KafkaSource{cl, cluster.Namespace}, nil
}

// Bounds implements Source.
func (k *KafkaSource) Bounds(ctx context.Context, name string, s archive.Selection) (Bounds, error) {
	b, err := topic.Range(ctx, k.client, k.namespace+name, s)
	return Bounds{Offsets: b}, err
}

// Read implements Source.
func (k *KafkaSource) Read(ctx context.Context, name string, b Bounds, behind Position, f func(archive.Record) error) error {
	return topic.Read(ctx, k.client, k.namespace, name, b.Offsets, behind.Last, f)
}

// Close ends the connections.
func (k *KafkaSource) Close() { k.client.Close() }

// ArchiveSource reads an archive.
type ArchiveSource struct{ archive *archive.Archive }

// NewArchiveSource makes a source of an archive.
func NewArchiveSource(a *archive.Archive) *ArchiveSource { return &ArchiveSource{a} }

// Bounds implements Source: an archive does not grow, but another one could take its
// place.
func (a *ArchiveSource) Bounds(_ context.Context, name string, _ archive.Selection) (Bounds, error) {
	if !a.archive.Has(name) {
		return Bounds{Absent: true}, nil
	}
	size, err := a.archive.Size(name)
	return Bounds{Bytes: size}, err
}

// Read implements Source.
func (a *ArchiveSource) Read(ctx context.Context, name string, b Bounds, behind Position, f func(archive.Record) error) error {
	if size, err := a.archive.Size(name); err != nil || size != b.Bytes {
		return fmt.Errorf("%w: the archive's file of %s has %d bytes and had %d when this replay began (%v)", ErrOther, name, size, b.Bytes, err)
	}
	skip := behind.Records
	return a.archive.Read(name, func(r archive.Record) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if skip > 0 {
			skip--
			return nil
		}
		return f(r)
	})
}
