package topology_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-rl/sluice/topology"
)

func builtIn(t *testing.T) topology.Topology {
	t.Helper()
	top, err := topology.Default()
	if err != nil {
		t.Fatalf("topology.yaml: %v", err)
	}
	return top
}

func TestTheBuiltInTopologyHoldsEveryTopicAndStage(t *testing.T) {
	top := builtIn(t)
	want := strings.Fields(`advantage-grouper-changelog close-requests code-calls code-results dead-letters grouped policy-updates ppo-batcher-changelog
		ppo-batches prompts reward-scorer-changelog runs scored stage-status trainer-annotations trainer-reports trajectories`)
	if got := slices.Sorted(maps.Keys(top.Topics)); !slices.Equal(got, want) {
		t.Errorf("topics %q, want %q", got, want)
	}
	want = strings.Fields("advantage-grouper code-executor metrics-writer ppo-batcher prompt-feeder reward-scorer sampler")
	if got := slices.Sorted(maps.Keys(top.Stages)); !slices.Equal(got, want) {
		t.Errorf("stages %q, want %q", got, want)
	}
	if top.MaxMessageBytes != 8<<20 {
		t.Errorf("max_message_bytes %d, want 8 MiB", top.MaxMessageBytes)
	}
}

func TestEveryTopicIsWrittenAndReadBySomebodyKnown(t *testing.T) {
	top := builtIn(t)
	read, written := map[string]bool{}, map[string]bool{}
	for _, s := range top.Stages {
		for _, name := range slices.Concat(s.Reads, s.Broadcast) {
			read[name] = true
		}
		for _, name := range s.Writes {
			written[name] = true
		}
	}
	// The trainer is not ours: it reads ppo-batches and writes the others.
	// Requests are written by hand, with sluice close.
	byTrainer := map[string]bool{"policy-updates": true, "trainer-reports": true, "trainer-annotations": true, "close-requests": true}
	for name, tp := range top.Topics {
		if !written[name] && !byTrainer[name] {
			t.Errorf("nobody writes %s", name)
		}
		if !read[name] && tp.Reader != topology.ReaderNone && tp.Reader != topology.ReaderChangelog {
			t.Errorf("nobody reads %s, whose reader is %s", name, tp.Reader)
		}
	}
}

func TestKeyedStagesHaveAChangelogOfTheirOwn(t *testing.T) {
	top := builtIn(t)
	for name, s := range top.Stages {
		if log := top.Changelog(name); (log != "") != (s.Intake == "keyed") {
			t.Errorf("%s with intake %q has changelog %q", name, s.Intake, log)
		}
	}
}

func TestTopologiesThatAreRefused(t *testing.T) {
	const good = `
replication: 1
max_message_bytes: 8388608
topics:
  prompts: {key: k, records: [Prompt], reader: keyed, partitions: 4, retention: 1h}
  scored: {key: k, records: [Scored], reader: keyed, partitions: 4, retention: 1h}
  log: {key: k, reader: changelog, of: grouper, partitions: 4, retention: compact}
stages:
  grouper: {group: g, intake: keyed, reads: [prompts, scored], writes: [log]}
`
	top, err := topology.Parse([]byte(good))
	if err != nil {
		t.Fatalf("the good one: %v", err)
	}
	if got := top.Topics["prompts"].Retention; got.Compact || got.For != time.Hour {
		t.Errorf("retention %+v, want an hour", got)
	}
	for _, c := range []struct{ old, new, says string }{
		{"prompts: {key: k, records: [Prompt], reader: keyed, partitions: 4", "prompts: {key: k, records: [Prompt], reader: keyed, partitions: 8", "must be equal"},
		{"of: grouper, partitions: 4", "of: grouper, partitions: 2", "must be equal"},
		{"reads: [prompts, scored]", "reads: [prompts, scores]", `"scores" is not in the list of topics`},
		{"replication: 1", "replication: 0", "replication is 0"},
		{"8388608", "1000", "max_message_bytes is 1000"},
		{"retention: 1h}", "retention: soon}", `retention "soon"`},
		{"reader: keyed", "reader: sorted", `reader "sorted"`},
		{"intake: keyed", "intake: kyed", `intake "kyed": want share, classic, keyed or ranges`},
		{"intake: keyed, ", "", "group g needs an intake"},
		{"group: g, ", "", "intake keyed needs a group"},
		{"records: [Prompt], ", "", "records is empty"},
		{"retention: compact", "retention: 1h", "changelog needs"},
		{"retention: compact", "retention: compact 1h", "changelog needs"},
		{"retention: compact", "retention: compact soon", `retention "compact soon"`},
		{"replication: 1", "replicas: 1", "replicas"},
	} {
		_, err := topology.Parse([]byte(strings.Replace(good, c.old, c.new, 1)))
		if !errors.Is(err, topology.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q instead of %q: %v, want ErrInvalid saying %q", c.new, c.old, err, c.says)
		}
	}
}

func TestAFileIsNamedInItsErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(path, []byte("topics: ["), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := topology.Load(path); !errors.Is(err, topology.ErrInvalid) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v, want ErrInvalid naming the file", err)
	}
	if _, err := topology.Load(path + ".no"); err == nil {
		t.Error("a missing file: no error")
	}
}
