package topology

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

//go:embed topology.yaml
var embedded []byte

// ErrInvalid is in the chain of every error about what a topology says.
var ErrInvalid = errors.New("invalid topology")

// StatusTopic is where every process says what holds it up. No work depends on it.
const StatusTopic = "stage-status"

// Topology is topology.yaml, read and checked.
type Topology struct {
	// Replication is the replication factor of every topic.
	Replication int16 `yaml:"replication"`
	// MaxMessageBytes bounds one record batch, for topics and producers.
	MaxMessageBytes int32            `yaml:"max_message_bytes"`
	Topics          map[string]Topic `yaml:"topics"`
	Stages          map[string]Stage `yaml:"stages"`
}

// Topic is one entry of the list of topics.
type Topic struct {
	// Key says in words what the record key is.
	Key string `yaml:"key"`
	// Records are the names of the record types the topic may carry.
	Records []string `yaml:"records"`
	Reader  Reader   `yaml:"reader"`
	// Of names the stage a changelog belongs to.
	Of         string    `yaml:"of"`
	Partitions int32     `yaml:"partitions"`
	Retention  Retention `yaml:"retention"`
}

// Reader is how stages read a topic.
type Reader string

// The kinds of reader, as topology.yaml explains them.
const (
	ReaderWorker    Reader = "worker"
	ReaderKeyed     Reader = "keyed"
	ReaderBroadcast Reader = "broadcast"
	ReaderChangelog Reader = "changelog"
	ReaderNone      Reader = "none"
)

// Intake is how a stage takes records.
type Intake string

// The intakes.
const (
	// IntakeShare: a share group, one record per slot.
	IntakeShare Intake = "share"
	// IntakeClassic: a consumer group with concurrent work inside each partition.
	IntakeClassic Intake = "classic"
	// IntakeKeyed: a consumer group with transactions.
	IntakeKeyed Intake = "keyed"
	// IntakeRanges: a consumer group that takes ranges of offsets.
	IntakeRanges Intake = "ranges"
)

// validate wants an intake exactly where there is a group.
func (i Intake) validate(group string) error {
	switch i {
	case IntakeShare, IntakeClassic, IntakeKeyed, IntakeRanges:
		if group == "" {
			return fmt.Errorf("intake %s needs a group", i)
		}
		return nil
	case "":
		if group != "" {
			return fmt.Errorf("group %s needs an intake: share, classic, keyed or ranges", group)
		}
		return nil
	}
	return fmt.Errorf("intake %q: want share, classic, keyed or ranges", i)
}

// Stage says what one stage reads and writes.
type Stage struct {
	// Group is the Kafka group, before the namespace prefix.
	Group string `yaml:"group"`
	// Intake is empty for a stage that only reads broadcasts.
	Intake Intake   `yaml:"intake"`
	Reads  []string `yaml:"reads"`
	// Broadcast topics are read whole, without the group.
	Broadcast []string `yaml:"broadcast"`
	Writes    []string `yaml:"writes"`
}

// Retention is a duration, or Compact, or both.
type Retention struct {
	// Compact keeps the latest record of each key.
	Compact bool
	// For is how long records are kept; with Compact 0 means for ever.
	For time.Duration
}

// UnmarshalYAML reads "168h", "compact" or "compact 24h".
func (r *Retention) UnmarshalYAML(n *yaml.Node) error {
	rest, compact := strings.CutPrefix(n.Value, "compact")
	if rest = strings.TrimSpace(rest); compact && rest == "" {
		*r = Retention{Compact: true}
		return nil
	}
	d, err := time.ParseDuration(rest)
	if err != nil || d <= 0 {
		return fmt.Errorf("line %d: retention %q: want \"compact\", a duration above 0 such as 168h, or both: \"compact 24h\"", n.Line, n.Value)
	}
	*r = Retention{Compact: compact, For: d}
	return nil
}

// Default returns the topology that is built in.
func Default() (Topology, error) { return Parse(embedded) }

// Load reads a topology from a file, or the built-in one where path is empty.
func Load(path string) (Topology, error) {
	if path == "" {
		return Default()
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return Topology{}, fmt.Errorf("read topology: %w", err)
	}
	t, err := Parse(b)
	if err != nil {
		return Topology{}, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// Parse reads and checks a topology. Unknown fields are refused.
func Parse(b []byte) (Topology, error) {
	var t Topology
	if err := yaml.Load(b, &t, yaml.WithKnownFields()); err != nil {
		return Topology{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if err := t.validate(); err != nil {
		return Topology{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return t, nil
}

func (t Topology) validate() error {
	if t.Replication < 1 {
		return fmt.Errorf("replication is %d, want at least 1", t.Replication)
	}
	if t.MaxMessageBytes < 1<<20 {
		return fmt.Errorf("max_message_bytes is %d, want at least 1048576: a full micro-batch needs about 1 MB", t.MaxMessageBytes)
	}
	for _, name := range slices.Sorted(maps.Keys(t.Topics)) {
		if err := t.Topics[name].validate(); err != nil {
			return fmt.Errorf("topic %s: %w", name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Stages)) {
		if err := t.validateStage(t.Stages[name]); err != nil {
			return fmt.Errorf("stage %s: %w", name, err)
		}
	}
	return nil
}

func (tp Topic) validate() error {
	if tp.Partitions < 1 {
		return fmt.Errorf("partitions is %d, want at least 1", tp.Partitions)
	}
	switch tp.Reader {
	case ReaderWorker, ReaderKeyed, ReaderBroadcast, ReaderNone:
		if len(tp.Records) == 0 {
			return errors.New("records is empty: name the record types it carries")
		}
	case ReaderChangelog:
		if tp.Of == "" || !tp.Retention.Compact || tp.Retention.For != 0 {
			return errors.New("a changelog needs `of`, the stage whose state it holds, and `retention: compact`")
		}
	default:
		return fmt.Errorf("reader %q: want worker, keyed, broadcast, changelog or none", tp.Reader)
	}
	if !tp.Retention.Compact && tp.Retention.For == 0 {
		return errors.New("retention is missing")
	}
	return nil
}

func (t Topology) validateStage(s Stage) error {
	for _, topic := range slices.Concat(s.Reads, s.Broadcast, s.Writes) {
		if _, ok := t.Topics[topic]; !ok {
			return fmt.Errorf("topic %q is not in the list of topics", topic)
		}
	}
	if err := s.Intake.validate(s.Group); err != nil {
		return err
	}
	if s.Intake != IntakeKeyed {
		return nil
	}
	// Inputs read together and the changelog of their state share partition
	// numbers: member 3 of each belongs to one state.
	var first string
	for _, topic := range t.copartitioned(s) {
		if first == "" {
			first = topic
			continue
		}
		if a, b := t.Topics[first].Partitions, t.Topics[topic].Partitions; a != b {
			return fmt.Errorf("reads %s (%d partitions) together with %s (%d): they must be equal", first, a, topic, b)
		}
	}
	return nil
}

func (t Topology) copartitioned(s Stage) []string {
	topics := slices.Clone(s.Reads)
	for _, w := range s.Writes {
		if t.Topics[w].Reader == ReaderChangelog {
			topics = append(topics, w)
		}
	}
	return topics
}

// Changelog returns the name of a stage's changelog topic, "" if it has none.
func (t Topology) Changelog(stage string) string {
	for _, name := range slices.Sorted(maps.Keys(t.Topics)) {
		if tp := t.Topics[name]; tp.Reader == ReaderChangelog && tp.Of == stage {
			return name
		}
	}
	return ""
}

// Name puts the namespace prefix in front of a topic or group name.
func Name(namespace, name string) string { return namespace + name }

var replayID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`)

// CheckReplayID refuses a replay's name that could not stand in topic names.
func CheckReplayID(id string) error {
	if !replayID.MatchString(id) {
		return fmt.Errorf("%w: replay id %q: want 1 to 40 of A-Z a-z 0-9 _ -", ErrInvalid, id)
	}
	return nil
}

// ReplayNamespace is the namespace of a replay of what is in another one.
func ReplayNamespace(original, id string) string { return original + "replay-" + id + "." }
