package apply

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/topology"
	"github.com/sluice-rl/sluice/topology/embedded/broker"
)

const small = `
replication: 1
max_message_bytes: 8388608
topics:
  prompts: {key: question id, records: [Prompt], reader: keyed, partitions: 2, retention: 168h}
  policy-updates: {key: run id, records: [PolicyUpdate], reader: broadcast, partitions: 1, retention: compact}
stages:
  code-executor: {group: code-executor, intake: share, reads: [prompts], writes: []}
`

func parse(t *testing.T) topology.Topology {
	t.Helper()
	top, err := topology.Parse([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	return top
}

func lines(ds []Difference) []string {
	var out []string
	for _, d := range ds {
		out = append(out, d.String())
	}
	return out
}

func TestDiffSaysExactlyWhatDiffers(t *testing.T) {
	prompts := map[string]string{"cleanup.policy": "delete", "retention.ms": "604800000", "max.message.bytes": "8388608"}
	updates := map[string]string{"cleanup.policy": "compact", "max.message.bytes": "8388608"}
	agreed := func() State {
		return State{
			Topics: map[string]TopicState{
				"demo.prompts": {2, 1, prompts}, "demo.policy-updates": {1, 1, updates},
			},
			Groups: map[string]map[string]string{"demo.code-executor": {"share.auto.offset.reset": "earliest"}},
		}
	}
	for _, c := range []struct {
		name   string
		change func(*State)
		want   []string
	}{
		{"nothing", func(*State) {}, nil},
		{"a missing topic", func(s *State) { delete(s.Topics, "demo.prompts") },
			[]string{"create topic demo.prompts (2 partitions, replication 1, kept for 168h0m0s)"}},
		{"another partition count", func(s *State) { s.Topics["demo.prompts"] = TopicState{4, 1, prompts} },
			[]string{"refuse topic demo.prompts: partitions is 4, topology says 2"}},
		{"another replication", func(s *State) { s.Topics["demo.prompts"] = TopicState{2, 3, prompts} },
			[]string{"note topic demo.prompts: replication is 3, topology says 1"}},
		{"another retention", func(s *State) {
			s.Topics["demo.prompts"] = TopicState{2, 1, map[string]string{"cleanup.policy": "delete", "retention.ms": "1000", "max.message.bytes": "8388608"}}
		}, []string{"alter topic demo.prompts: retention.ms is 1000, topology says 604800000"}},
		{"a compacted topic that is not", func(s *State) {
			s.Topics["demo.policy-updates"] = TopicState{1, 1, map[string]string{"cleanup.policy": "delete", "max.message.bytes": "8388608"}}
		}, []string{"alter topic demo.policy-updates: cleanup.policy is delete, topology says compact"}},
		{"a share group without configs", func(s *State) { s.Groups = map[string]map[string]string{} },
			[]string{"set share group demo.code-executor: share.auto.offset.reset = earliest"}},
		{"a share group at latest", func(s *State) {
			s.Groups = map[string]map[string]string{"demo.code-executor": {"share.auto.offset.reset": "latest"}}
		}, []string{"alter share group demo.code-executor: share.auto.offset.reset is latest, topology says earliest"}},
		{"brokers without share groups", func(s *State) { s.Groups = nil },
			[]string{"share group demo.code-executor: these brokers have no share groups; give code-executor the intake classic in the topology file"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			have := agreed()
			c.change(&have)
			if d := cmp.Diff(c.want, lines(Diff(parse(t), "demo.", have))); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

func startBroker(t *testing.T) *kgo.Client {
	t.Helper()
	b, err := broker.Start(broker.Config{DataDir: t.TempDir(), MaxMessageBytes: 8 << 20}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Address()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

func TestApplyOnABroker(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cl, top := startBroker(t), parse(t)
	want := []string{
		"create topic demo.policy-updates (1 partitions, replication 1, compacted)",
		"create topic demo.prompts (2 partitions, replication 1, kept for 168h0m0s)",
		"set share group demo.code-executor: share.auto.offset.reset = earliest",
	}
	for _, dry := range []bool{true, false} {
		ds, err := Apply(ctx, cl, top, Options{Namespace: "demo.", DryRun: dry})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, lines(ds)); d != "" {
			t.Errorf("dry run %v, on an empty cluster (-want +got)\n%s", dry, d)
		}
	}
	ds, err := Apply(ctx, cl, top, Options{Namespace: "demo."})
	if err != nil || len(ds) != 0 {
		t.Errorf("the second time: %v, %v; want nothing to do", lines(ds), err)
	}

	if _, err := kadm.NewClient(cl).AlterTopicConfigs(ctx, []kadm.AlterConfig{{Name: "retention.ms", Value: kadm.StringPtr("1000")}}, "demo.prompts"); err != nil {
		t.Fatal(err)
	}
	if _, err := Apply(ctx, cl, top, Options{Namespace: "demo."}); !errors.Is(err, ErrDiffers) || !strings.Contains(err.Error(), "--yes") {
		t.Errorf("another retention without Alter: %v, want ErrDiffers naming --yes", err)
	}
	if _, err := Apply(ctx, cl, top, Options{Namespace: "demo.", Alter: true}); err != nil {
		t.Errorf("with Alter: %v", err)
	}
	if ds, err := Apply(ctx, cl, top, Options{Namespace: "demo."}); err != nil || len(ds) != 0 {
		t.Errorf("after altering: %v, %v; want agreement", lines(ds), err)
	}
}

func TestAChangedPartitionCountIsRefusedAndNothingIsCreated(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cl := startBroker(t)
	admin := kadm.NewClient(cl)
	if _, err := admin.CreateTopic(ctx, 5, 1, nil, "prompts"); err != nil {
		t.Fatal(err)
	}
	_, err := Apply(ctx, cl, parse(t), Options{Alter: true})
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "partitions is 5, topology says 2") {
		t.Errorf("got %v, want ErrRefused with both counts", err)
	}
	topics, err := admin.ListTopics(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"prompts"}, topics.Names()); d != "" {
		t.Errorf("topics (-want +got)\n%s", d)
	}
}

func TestACLs(t *testing.T) {
	top := topology.Topology{
		Topics: map[string]topology.Topic{"in": {}, "out": {}, "s-changelog": {Of: "s"}, "b": {}},
		Stages: map[string]topology.Stage{
			"s": {Group: "g", Intake: topology.IntakeKeyed, Reads: []string{"in"}, Broadcast: []string{"b"}, Writes: []string{"out", "s-changelog"}},
			"w": {Group: "w", Intake: topology.IntakeShare, Reads: []string{"out"}},
		},
	}
	acls, err := ACLs(top, "n.", "User:x-{stage}")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range acls {
		got = append(got, a.String())
	}
	want := []string{
		"User:x-s may read topic n.b", "User:x-s may read topic n.in", "User:x-s may read topic n.s-changelog",
		"User:x-s may write topic n.out", "User:x-s may write topic n.s-changelog",
		"User:x-s may read group n.g", "User:x-s may write transactional-id n.s-*",
		"User:x-trainer may read topic n.ppo-batches", "User:x-trainer may write topic n.policy-updates", "User:x-trainer may write topic n.trainer-annotations", "User:x-trainer may write topic n.trainer-reports",
		"User:x-w may read topic n.out", "User:x-w may read group n.w", "User:x-w may alter-configs group n.w",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := ACLs(topology.Topology{}, "", "User:{stage}"); err != nil {
		t.Errorf("an empty topology: %v", err)
	}
	for _, bad := range []string{"", "User:all", "x-{stage}", ":{stage}"} {
		if _, err := ACLs(top, "", bad); !errors.Is(err, ErrPrincipal) {
			t.Errorf("%q: error %v, want ErrPrincipal", bad, err)
		}
	}
}
