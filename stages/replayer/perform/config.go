package perform

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/sluice-rl/sluice/schemas/archive"
	"github.com/sluice-rl/sluice/schemas/archive/topic"
	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/stages/advantage-grouper/advantage"
	"github.com/sluice-rl/sluice/stages/ppo-batcher/step"
	"github.com/sluice-rl/sluice/stages/reward-scorer/reward"
)

var (
	// ErrConfig: the configuration cannot be used.
	ErrConfig = errors.New("replay misconfigured")
	// ErrOther: the state folder or the output belongs to another replay.
	ErrOther = errors.New("of another replay")
	// ErrNothing: there was nothing to replay.
	ErrNothing = errors.New("nothing was replayed")
	// ErrBusy: another process works on the same replay.
	ErrBusy = errors.New("another process works on this replay")
)

// Until says how far a replay goes.
type Until string

// How far a replay goes: each includes the ones before it.
const (
	Scores  Until = "scores"
	Groups  Until = "groups"
	Batches Until = "batches"
)

// The topics of a replay's output; the first may also be its input.
const (
	topicScored  = "scored"
	topicGrouped = "grouped"
	topicBatches = "ppo-batches"
)

// Config is one replay.
type Config struct {
	ID string
	// Source is where recorded messages are, and Trajectories the topic of the
	// trajectories there: scored or trajectories.
	Source       Source
	Trajectories string
	Select       archive.Selection
	Until        Until

	Rewards *reward.Set
	Rule    advantage.Rule
	Batches step.Rules

	Sink Sink
	// State is a folder for the checkpoint and what batches need. A sink may have
	// files of its own there.
	State string
	// Fingerprint stands for everything that decides the output.
	Fingerprint string

	// Workers is how many chunks are worked on at once. 0: one per processor.
	Workers int
	// Every is the time between checkpoints. 0: 5 s.
	Every time.Duration
	// Progress is told how far it is, at each checkpoint and at most every second.
	// May be nil.
	Progress func(Progress)
	Log      *slog.Logger

	// at is called between steps; an error stops everything where it stands, as a
	// crash would.
	at func(point string) error
}

// Progress is how far a replay is.
type Progress struct {
	// Phase is "scoring", "grouping" (closings), "batching" (closings and batches) or
	// "writing" (of Parquet).
	Phase string
	// Done counts trajectories read, steps, or records written.
	Done int64
	// Share is how much of the phase that is, from 0 to 1.
	Share float64
	// Ended: there is no more of the phase.
	Ended bool
}

// Source gives recorded records.
type Source interface {
	// Bounds fixes what there is of a topic now.
	Bounds(ctx context.Context, topic string, s archive.Selection) (Bounds, error)
	// Read calls f with the records of a topic within the bounds and behind the
	// position, partition by partition and by offset, in batches that depend on
	// nothing but these.
	Read(ctx context.Context, topic string, b Bounds, behind Position, f func(Batch) error) error
}

// Batch is some records that have been read, and perhaps not decoded yet.
type Batch struct {
	// Records decodes them; where types are given, only those that say they are of one
	// of them. It may be called on another goroutine.
	Records func(types ...string) ([]archive.Record, error)
	// Behind is the position after them.
	Behind Position
	// Share is how much of all that is read lies before it, from 0 to 1.
	Share float64
}

// Bounds is what is read of a topic.
type Bounds struct {
	// Offsets bound a topic of Kafka.
	Offsets topic.Bounds `json:"offsets,omitempty"`
	// Bytes is the size of an archive's file.
	Bytes int64 `json:"bytes,omitempty"`
	// Absent: the source has no such topic.
	Absent bool `json:"absent,omitempty"`
}

// Position is how far a topic was read.
type Position struct {
	// Records counts what Read gave: of an archive the rows of its file.
	Records int64 `json:"records"`
	// Last is the last of them, nil if there is none.
	Last *topic.Position `json:"last,omitempty"`
}

// Item is one record of the output.
type Item struct {
	Topic string
	Time  time.Time
	codec.Record
	// JSON is its archive.JSONBody where the sink wants it.
	JSON []byte
}

// Sink takes the output, in order.
type Sink interface {
	// WantsJSON says whether items are to come with JSON.
	WantsJSON() bool
	// Resume makes the sink agree with a checkpoint: what was written after it is
	// cut off, or recognised and not written again. A zero mark is the beginning;
	// then whatever is there already is ErrOther.
	Resume(ctx context.Context, topics []string, m Mark) error
	// Write takes items. After an error the sink is of no more use.
	Write(ctx context.Context, items []Item) error
	// Sync makes everything written durable and says how much that is. After an error
	// the sink is of no more use.
	Sync(ctx context.Context) (Mark, error)
	// Finish ends the output after the last Sync. told says how many of the records
	// that must be moved have been.
	Finish(ctx context.Context, s Summary, told func(done, total int64)) error
	// Clean removes what is of no use once the checkpoint says that all is done.
	Clean() error
	// Holds says whether the output of a replay that was finished under this mark is
	// still there: ErrOther if it is not.
	Holds(ctx context.Context, topics []string, m Mark) error
}

// Mark is how much a sink has.
type Mark struct {
	// Files are bytes and records by topic.
	Files map[string]FileMark `json:"files,omitempty"`
	// Partitions are ends by topic and partition.
	Partitions map[string]map[int32]int64 `json:"partitions,omitempty"`
}

// FileMark is how much of a file belongs to a checkpoint.
type FileMark struct {
	Bytes   int64 `json:"bytes"`
	Records int64 `json:"records"`
}

func (m Mark) zero() bool { return m.Files == nil && m.Partitions == nil }

// Check refuses what cannot be replayed, before anything is opened.
func (c *Config) Check() error {
	switch c.Until {
	case Scores, Groups:
	case Batches:
		if c.Select.ByProblem() {
			return fmt.Errorf("%w: batches need whole steps: leave out --question and --data-source, or stop at groups", ErrConfig)
		}
		if err := c.Batches.Validate(); err != nil {
			return fmt.Errorf("%w: %w", ErrConfig, err)
		}
	default:
		return fmt.Errorf("%w: until %q: want scores, groups or batches", ErrConfig, c.Until)
	}
	if c.Trajectories != topicScored && c.Trajectories != "trajectories" {
		return fmt.Errorf("%w: trajectories from %q: want scored or trajectories", ErrConfig, c.Trajectories)
	}
	return nil
}

func (c *Config) prepare() error {
	if err := c.Check(); err != nil {
		return err
	}
	if c.Workers <= 0 {
		c.Workers = runtime.GOMAXPROCS(0)
	}
	if c.Every <= 0 {
		c.Every = 5 * time.Second
	}
	if c.Progress == nil {
		c.Progress = func(Progress) {}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.at == nil {
		c.at = func(string) error { return nil }
	}
	return nil
}

// topics are the outputs of a replay that goes so far.
func (u Until) topics() []string {
	switch u {
	case Scores:
		return []string{topicScored}
	case Groups:
		return []string{topicScored, topicGrouped}
	}
	return []string{topicScored, topicGrouped, topicBatches}
}
