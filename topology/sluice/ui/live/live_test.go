package live_test

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/sluice-rl/sluice/topology/sluice/ui/live"
	"github.com/sluice-rl/sluice/topology/sluice/ui/uitest"
)

func TestARecordsChainIsRecomputed(t *testing.T) {
	broken := proto.CloneOf(uitest.Scored())
	broken.Trajectory.Turns[1].Logprobs[0] ^= 1
	empty := proto.CloneOf(uitest.Scored())
	empty.Trajectory.Turns, empty.Trajectory.CodeCalls, empty.Trajectory.Executions = nil, 0, 0
	w := uitest.StartBroker(t, uitest.Scored(), broken, empty).Watch()
	got, err := w.Trajectory(t.Context(), "scored", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got.Custody != "holds" || got.Place != [6]string{"hand", "0", "2", "0", "0", "201"} || len(got.Turns) != 2 || len(got.Turns[0].Digest) != 64 {
		t.Errorf("got %+v, want the chain of copy 201 to hold", got)
	}
	if v := got.Turns[0].Versions; len(v) != 2 || v[0] != (live.Span{Version: 1, Count: 2}) || v[1] != (live.Span{Version: 2, Count: 1}) {
		t.Errorf("versions %v", v)
	}
	if got, err = w.Trajectory(t.Context(), "scored", 0, 1); err != nil || got.Custody != "broken" || got.Detail == "" {
		t.Errorf("one bit of a logprob changed: %+v, %v; want it broken", got, err)
	}
	if got, err = w.Trajectory(t.Context(), "scored", 0, 2); err != nil || got.Custody != "none" {
		t.Errorf("no turns: %+v, %v", got, err)
	}
	for _, c := range []struct {
		topic             string
		partition, offset int
	}{{"scored", 0, 99}, {"scored", 0, -1}, {"scored", 999, 0}, {"no-such-topic", 0, 0}} {
		if _, err := w.Trajectory(t.Context(), c.topic, int32(c.partition), int64(c.offset)); !errors.Is(err, live.ErrGone) {
			t.Errorf("%v: %v, want ErrGone", c, err)
		}
	}
}

func TestALookSaysWhatWaitsAndHowFarSQLIsBehind(t *testing.T) {
	w := uitest.StartBroker(t, uitest.Scored()).Watch()
	now, err := w.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	waiting := map[string]int64{}
	for _, work := range now.Work {
		if work.Topic == "scored" {
			waiting[work.Stage] = work.Depth
		}
	}
	if waiting["metrics-writer"] != 1 || waiting["advantage-grouper"] != 1 {
		t.Errorf("waiting in scored: %v, want 1 each", waiting)
	}
	if now.BehindSeconds <= 0 {
		t.Errorf("behind %v s with a record that waits, want above 0", now.BehindSeconds)
	}
	if len(now.Flow["sampler"].Reads) == 0 || len(now.Processes) != 0 {
		t.Errorf("flow %v, processes %v", now.Flow, now.Processes)
	}
	again, err := w.Look(t.Context())
	if err != nil || !again.At.Equal(now.At) {
		t.Errorf("a second look at once: %v, %v; want the first one's", again.At, err)
	}
}
