package perform

import (
	"context"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/schemas/archive"
	"github.com/sluice-rl/sluice/schemas/archive/topic"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
)

// KafkaSource reads a cluster's topics.
type KafkaSource struct {
	client    *kgo.Client
	namespace string
}

// NewKafkaSource makes a source of the topics in the cluster's namespace.
func NewKafkaSource(cluster kafka.ClusterConfig) (*KafkaSource, error) {
	cl, err := kafka.NewClient(cluster, "replay", "replay-source", topic.Options()...)
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

// A batch of a topic holds so much: a verifier behind HTTP gets it in one request.
const (
	batchRecords = 64
	batchBytes   = 1 << 20
)

// Read implements Source.
func (k *KafkaSource) Read(ctx context.Context, name string, b Bounds, behind Position, f func(Batch) error) error {
	var all []archive.Record
	bytes := 0
	flush := func() error {
		if len(all) == 0 {
			return nil
		}
		last := all[len(all)-1]
		behind = Position{behind.Records + int64(len(all)), &topic.Position{Partition: last.Partition, Offset: last.Offset}}
		batch := Batch{ofTypes(all), behind, share(b.Offsets, *behind.Last)}
		all, bytes = make([]archive.Record, 0, batchRecords), 0
		return f(batch)
	}
	err := topic.Read(ctx, k.client, k.namespace, name, b.Offsets, behind.Last, func(r archive.Record) error {
		all, bytes = append(all, r), bytes+len(r.Value)
		if len(all) < batchRecords && bytes < batchBytes {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush()
}

// share is how much lies before a position, offsets of markers included.
func share(b topic.Bounds, at topic.Position) float64 {
	var before int64
	for p, span := range b {
		if p < at.Partition {
			before += span.To - span.From
		} else if p == at.Partition {
			before += at.Offset + 1 - span.From
		}
	}
	return float64(before) / float64(max(b.Records(), 1))
}

// ofTypes gives records that are decoded already.
func ofTypes(all []archive.Record) func(types ...string) ([]archive.Record, error) {
	return func(types ...string) ([]archive.Record, error) {
		if len(types) == 0 {
			return all, nil
		}
		return slices.DeleteFunc(slices.Clone(all), func(r archive.Record) bool { return !slices.Contains(types, r.Type()) }), nil
	}
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
func (a *ArchiveSource) Read(ctx context.Context, name string, b Bounds, behind Position, f func(Batch) error) error {
	size, err := a.archive.Size(name)
	if err != nil {
		return fmt.Errorf("%w: the archive's file of %s had %d bytes when this replay began: %w", ErrOther, name, b.Bytes, err)
	}
	if size != b.Bytes {
		return fmt.Errorf("%w: the archive's file of %s has %d bytes and had %d when this replay began", ErrOther, name, size, b.Bytes)
	}
	return a.archive.Batches(name, behind.Records, func(rows archive.Batch) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		behind.Records += rows.Rows
		return f(Batch{rows.Records, behind, rows.Share})
	})
}

// Close closes the archive's files.
func (a *ArchiveSource) Close() { _ = a.archive.Close() }
