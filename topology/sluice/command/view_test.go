package command

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/topology/sluice/depth"
	"github.com/sluice-rl/sluice/topology/sluice/presence"
)

// What the processes say is told in a line each, ages by their own clocks, hostile text
// escaped.
func TestStatusTellsWhatTheProcessesSay(t *testing.T) {
	now := time.Unix(10_000, 0)
	// A process whose clock is an hour ahead: its ages do not depend on ours.
	theirs := now.Add(time.Hour)
	ago := func(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(theirs.Add(-d)) }
	process := func(instance string, heard time.Duration, s *sluicev1.StageStatus) presence.Process {
		s.Stage, s.Instance, s.IntervalMs, s.ReportedAt = "sampler", instance, 10_000, ago(0)
		return presence.Process{StageStatus: s, Heard: now.Add(-heard)}
	}
	v := view{
		Snapshot: depth.Snapshot{At: now, Work: []depth.Work{{Stage: "sampler", Topic: "code-results"}, {Stage: "sampler", Topic: "prompts", Depth: 7}}},
		Processes: []presence.Process{
			process("a", time.Second, &sluicev1.StageStatus{
				Notes:     []*sluicev1.StatusNote{{Name: "inference server", Endpoint: "http://gpu", Text: "connection \x1b[2Jrefused", BackendAway: true, Since: ago(12 * time.Minute)}},
				Oldest:    &sluicev1.OldestRecord{Topic: "prompts", Partition: 1, Offset: 9, Since: ago(40 * time.Second), Attempts: 3, Text: "no answer"},
				LastError: &sluicev1.StatusError{ErrorType: "retried", Text: "timeout", At: ago(5 * time.Hour), Count: 4},
			}),
			process("b", time.Second, &sluicev1.StageStatus{Stopped: true}),
			process("c", 5*time.Minute, &sluicev1.StageStatus{}),
		},
	}
	want := strings.Split(`
sampler/a: inference server (http://gpu): connection \x1b[2Jrefused, for 12m
sampler/a: the oldest record in hand, prompts/1@9, has waited for 40s in 3 attempts: no answer
sampler/a: last of 4 errors, 5h00m ago: retried: timeout
sampler/c: silent for 5m, and it did not say that it ended
`, "\n")
	if d := cmp.Diff(want, strings.Split(v.remarks(), "\n")); d != "" {
		t.Errorf("remarks (-want +got):\n%s", d)
	}
	if got := strings.Fields(lines(v.table())[1])[:2]; got[1] != "1" {
		t.Errorf("first row of the table begins %q, want 1 live sampler", got)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var back struct {
		Work      []depth.Work
		Processes []map[string]any
	}
	if err := json.Unmarshal(b, &back); err != nil || len(back.Work) != 2 || len(back.Processes) != 3 || back.Processes[0]["instance"] != "a" {
		t.Errorf("JSON %s: %v; want 2 rows of work and 3 processes", b, err)
	}
}

// What a run waits for is told in a line; a step that does not move is an alarm, and so is
// work that nobody takes.
func TestStatusTellsWhatARunWaitsFor(t *testing.T) {
	now := time.Unix(10_000, 0)
	ago := func(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(now.Add(-d)) }
	batcher := presence.Process{Heard: now, StageStatus: &sluicev1.StageStatus{
		Stage: "ppo-batcher", Instance: "a", IntervalMs: 10_000, ReportedAt: ago(0),
		Steps: []*sluicev1.StepProgress{
			{RunId: "r", Step: 7, Groups: 3, GroupsClosed: 2, OpenSlots: []uint32{1}, MovedAt: ago(12 * time.Minute)},
			{RunId: "r", Step: 6, Batched: true, MovedAt: ago(30 * time.Second)},
			{RunId: "s", Incarnation: 2, Step: 1, MovedAt: ago(time.Second)},
		},
	}}
	v := view{
		Snapshot:  depth.Snapshot{At: now, Work: []depth.Work{{Stage: "sampler", Topic: "prompts", Depth: 7}, {Stage: "ppo-batcher", Topic: "grouped"}}},
		Processes: []presence.Process{batcher}, Patience: 10 * time.Minute,
	}
	want := strings.Split(`
ALARM run r: step 7: 2 of 3 groups closed, waiting for slot 1 since 12m: it does not move
run r: step 6: batched, waiting for the trainer since 30s
run s: step 1 (incarnation 2): no group closed yet, last member came 1s ago
`, "\n")
	if d := cmp.Diff(want, strings.Split(v.waits(), "\n")); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	err := v.check()
	for _, says := range []string{"run r, step 7 has not moved for 12m", "7 records of prompts wait for sampler"} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("check: %v, want it to say %q", err, says)
		}
	}
	v.Work, v.Patience = v.Work[1:], time.Hour
	if err := v.check(); err != nil {
		t.Errorf("check of a run that moves: %v", err)
	}
}
