package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/sluice-rl/sluice/sandboxd/api"
	"github.com/sluice-rl/sluice/sandboxd/client"
	"github.com/sluice-rl/sluice/schemas/custody"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/internal/stage"
	"github.com/sluice-rl/sluice/stages/internal/testkit/kafkatest"
)

// fakeSandboxes is sandboxd with a script for programs.
type fakeSandboxes struct {
	slots int
	// program says how a program's n-th run (from 1) goes.
	program func(code string, n int) (client.Result, time.Duration, error)

	mu       sync.Mutex
	away     error
	taken    map[*fakeReservation]bool
	keys     map[string]*fakeReservation // by key, the last that was given
	most     int
	runs     map[string]int
	running  int
	requests []client.Request
}

func (f *fakeSandboxes) set(change func(*fakeSandboxes)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// restart loses every reservation.
func (f *fakeSandboxes) restart() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for r := range f.taken {
		close(r.lost)
	}
	f.taken = nil
}

func (f *fakeSandboxes) Ready(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.away
}

func (f *fakeSandboxes) Slots(context.Context) (int, error) { return f.slots, nil }

func (f *fakeSandboxes) Reserve(_ context.Context, key string) (reservation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.keys[key]
	switch {
	case f.away != nil:
		return nil, f.away
	case f.taken[before]: // its holder is not the one who asks any more
		delete(f.taken, before)
		close(before.lost)
	case len(f.taken) >= f.slots:
		return nil, &client.BusyError{Code: "busy", RetryAfter: time.Second}
	}
	if f.taken == nil {
		f.taken = map[*fakeReservation]bool{}
	}
	if f.keys == nil {
		f.keys = map[string]*fakeReservation{}
	}
	r := &fakeReservation{f: f, lost: make(chan struct{})}
	f.taken[r], f.keys[key] = true, r
	return r, nil
}

// Run runs a program in hand, in the place of an idle reservation if none is free.
func (f *fakeSandboxes) Run(ctx context.Context, req client.Request) (client.Result, error) {
	r := &fakeReservation{f: f, lost: make(chan struct{})}
	f.mu.Lock()
	if f.away == nil && len(f.taken) >= f.slots {
		for idle := range f.taken {
			if !idle.busy {
				delete(f.taken, idle)
				close(idle.lost)
				break
			}
		}
	}
	if f.away == nil && len(f.taken) >= f.slots {
		f.mu.Unlock()
		return client.Result{}, &client.BusyError{Code: "busy", RetryAfter: time.Second}
	}
	if f.taken == nil {
		f.taken = map[*fakeReservation]bool{}
	}
	f.taken[r] = true
	f.mu.Unlock()
	defer r.Release()
	return r.Run(ctx, req)
}

type fakeReservation struct {
	f    *fakeSandboxes
	lost chan struct{}
	busy bool
}

func (r *fakeReservation) Lost() <-chan struct{} { return r.lost }

func (r *fakeReservation) Release() {
	r.f.mu.Lock()
	defer r.f.mu.Unlock()
	if r.f.taken[r] {
		delete(r.f.taken, r)
		close(r.lost)
	}
}

func (r *fakeReservation) Run(ctx context.Context, req client.Request) (client.Result, error) {
	f := r.f
	f.mu.Lock()
	if f.away != nil {
		defer f.mu.Unlock()
		return client.Result{}, f.away
	}
	if !f.taken[r] {
		defer f.mu.Unlock()
		return client.Result{}, client.ErrReservationLost
	}
	if f.runs == nil {
		f.runs = map[string]int{}
	}
	f.runs[req.Code]++
	n := f.runs[req.Code]
	f.requests = append(f.requests, req)
	f.running++
	r.busy = true
	f.most = max(f.most, f.running)
	f.mu.Unlock()
	result, took, err := f.program(req.Code, n)
	select {
	case <-time.After(took):
	case <-ctx.Done():
		err = ctx.Err()
	}
	f.mu.Lock()
	f.running--
	r.busy = false
	f.mu.Unlock()
	return result, err
}

func printed(s string) client.Result {
	return client.Result{Outcome: api.OK, Stdout: api.Stream{Kept: []byte(s), Total: int64(len(s))}, WallMS: 5}
}

func start(w *kafkatest.World, f *fakeSandboxes) (*kafkatest.Running, *stage.Env) {
	e := newExecutor()
	e.sandboxes = f
	e.cfg = config{attempts: 3, lock: 30 * time.Second, patience: time.Minute}
	env := w.Env(name)
	return w.Start(e.run, env), env
}

func codeCall(n int, code string) *sluicev1.CodeCall {
	t := &sluicev1.Trajectory{
		Prompt: &sluicev1.Prompt{
			Group:     &sluicev1.GroupPlace{RunId: "run", Step: 1, Slot: uint32(n / 8)},
			Problem:   &sluicev1.Problem{QuestionId: fmt.Sprintf("q%d", n/8), Question: "6*7?", Answer: "42"},
			GroupSize: 8, GroupsInStep: 1000, Mode: sluicev1.Mode_MODE_TRAIN, Budgets: &sluicev1.Budgets{ExecutionTimeoutMs: 30000},
		},
		SampleIndex: uint32(n % 8), Copy: uint64(n + 1),
		Turns: []*sluicev1.Turn{{Tokens: tokens.IDs(1), Logprobs: tokens.Floats(-1), Versions: tokens.Versions(1), Kind: sluicev1.TurnKind_TURN_KIND_TOOL, Code: code}},
	}
	custody.SealAll(t)
	return &sluicev1.CodeCall{Trajectory: t, CallId: fmt.Sprintf("call-%d", n)}
}

func put(w *kafkatest.World, calls ...*sluicev1.CodeCall) {
	for _, c := range calls {
		w.Put(kafka.Output{Topic: "code-calls", Body: c, RoundRobin: true})
	}
}

func executions(ms []proto.Message) map[string]*sluicev1.Execution {
	out := map[string]*sluicev1.Execution{}
	for _, m := range ms {
		out[m.(*sluicev1.CodeResult).GetCallId()] = m.(*sluicev1.CodeResult).GetExecution()
	}
	return out
}

func TestEveryOutcomeOfAProgramIsItsExecution(t *testing.T) {
	runs := map[string]client.Result{
		"ok":     printed("42\n"),
		"error":  {Outcome: api.Error, ExitCode: 1, Exception: "NameError", Stderr: api.Stream{Kept: []byte("NameError: x\n"), Total: 13}},
		"time":   {Outcome: api.Timeout, ExitCode: -1, WallMS: 30000},
		"memory": {Outcome: api.OutOfMemory, ExitCode: 137},
		"output": {Outcome: api.OutputLimit, ExitCode: -1, Stdout: api.Stream{Kept: []byte(strings.Repeat("x", 8192)), Total: 10 << 20, Truncated: true}},
		"killed": {Outcome: api.Killed, ExitCode: 137, QueueWaitMS: 3, StartMS: 4},
		"bytes":  {Outcome: api.OK, Stdout: api.Stream{Kept: []byte("\xff\xfe2\n"), Total: 4}, Exception: "\x1b[2J" + strings.Repeat("E", 300)},
	}
	wants := map[string]*sluicev1.Execution{
		"ok":     {Outcome: 1, Stdout: "42\n", StdoutBytes: 3, WallMs: 5},
		"error":  {Outcome: 2, ExitCode: 1, Exception: "NameError", Stderr: "NameError: x\n", StderrBytes: 13},
		"time":   {Outcome: 3, ExitCode: -1, WallMs: 30000},
		"memory": {Outcome: 4, ExitCode: 137},
		"output": {Outcome: 5, ExitCode: -1, Stdout: "[... truncated 10481664 bytes ...]\n" + strings.Repeat("x", 4096), StdoutBytes: 10 << 20, StdoutTruncated: true},
		"killed": {Outcome: 6, ExitCode: 137, QueueWaitMs: 7},
		"bytes":  {Outcome: 1, Stdout: "\ufffd\ufffd2\n", StdoutBytes: 4, Exception: "2J" + strings.Repeat("E", 98)},
	}
	kafkatest.Run(t, func(w *kafkatest.World) {
		f := &fakeSandboxes{slots: 4, program: func(code string, _ int) (client.Result, time.Duration, error) {
			return runs[code], time.Duration(runs[code].WallMS) * time.Millisecond, nil
		}}
		s, _ := start(w, f)
		defer s.Stop()
		n := 0
		names := map[string]string{}
		for code := range runs {
			c := codeCall(n, code)
			names[c.GetCallId()] = code
			put(w, c)
			n++
		}
		for id, got := range executions(w.Await("code-results", n)) {
			want := wants[names[id]]
			want.CallId, want.TimeoutMs, want.Delivery = id, 30000, 1
			if got.GetQueuedAt() == nil || got.GetStartedAt() == nil || got.GetEndedAt() == nil {
				t.Errorf("%s: a time is missing: %v", names[id], got)
			}
			if diff := cmp.Diff(want, got, protocmp.Transform(), protocmp.IgnoreFields(got, "queued_at", "started_at", "ended_at")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", names[id], diff)
			}
		}
		for _, r := range f.requests {
			if r.TimeoutMS != 30000 || !strings.HasPrefix(r.Label, "call-") {
				t.Errorf("asked sandboxd with %+v", r)
			}
		}
	})
}

func TestAFailedSandboxIsRetriedAndNeverShown(t *testing.T) {
	kafkatest.Run(t, func(w *kafkatest.World) {
		f := &fakeSandboxes{slots: 2, program: func(code string, n int) (client.Result, time.Duration, error) {
			if code == "never" || n < 3 {
				return client.Result{Outcome: api.InfraError, Message: "runsc exited with 128"}, time.Millisecond, nil
			}
			return printed("42\n"), time.Millisecond, nil
		}}
		s, _ := start(w, f)
		defer s.Stop()
		put(w, codeCall(0, "at the third attempt"), codeCall(1, "never"))
		got := w.Await("code-results", 1)[0].(*sluicev1.CodeResult)
		if got.GetExecution().GetStdout() != "42\n" || got.GetCallId() != "call-0" {
			t.Errorf("result %v", got)
		}
		ended := w.Await("trajectories", 1)[0].(*sluicev1.Trajectory)
		if ended.GetEndReason() != sluicev1.EndReason_END_REASON_INFRA_ERROR || ended.GetSampleIndex() != 1 || ended.GetEndedBy() != "code-executor" ||
			!strings.Contains(ended.GetEndDetail(), "runsc exited with 128") || len(ended.GetTurns()) != 1 || ended.GetEndedAt() == nil {
			t.Errorf("trajectory ended as %v", ended)
		}
		// Tokens that the executor does not look at are written as they came.
		for _, turns := range [][]*sluicev1.Turn{ended.GetTurns(), got.GetTrajectory().GetTurns()} {
			if turn := turns[0]; tokens.Count(turn.GetTokens()) != 1 || tokens.Count(turn.GetLogprobs()) != 1 || tokens.CountVersions(turn.GetVersions()) != 1 {
				t.Errorf("the turn was written as %v, want it with its token", turn)
			}
		}
		if n, m := len(w.Settle("code-results")), len(w.Settle("dead-letters")); n != 1 || m != 0 {
			t.Errorf("%d results and %d dead letters, want 1 and 0", n, m)
		}
	})
}

// A kernel that dies once under a program is somebody's kill, and the program runs again.
// One that dies under it twice is the program's doing: it ends as a class of its own, which
// is neither a verdict nor asked for again.
func TestAProgramThatBreaksItsSandboxTwiceEnds(t *testing.T) {
	kafkatest.Run(t, func(w *kafkatest.World) {
		f := &fakeSandboxes{slots: 2, program: func(code string, n int) (client.Result, time.Duration, error) {
			if code == "breaks" || n < 2 {
				return client.Result{Outcome: api.InfraError, Cause: api.CauseDied, Message: "panic: out of mappings"}, time.Millisecond, nil
			}
			return printed("42\n"), time.Millisecond, nil
		}}
		s, _ := start(w, f)
		defer s.Stop()
		put(w, codeCall(0, "killed once"), codeCall(1, "breaks"))
		if got := w.Await("code-results", 1)[0].(*sluicev1.CodeResult); got.GetCallId() != "call-0" || got.GetExecution().GetStdout() != "42\n" {
			t.Errorf("result %v", got)
		}
		ended := w.Await("trajectories", 1)[0].(*sluicev1.Trajectory)
		if ended.GetEndReason() != sluicev1.EndReason_END_REASON_SANDBOX_BROKEN || ended.GetSampleIndex() != 1 ||
			!strings.Contains(ended.GetEndDetail(), "died 2 times") || !strings.Contains(ended.GetEndDetail(), "out of mappings") {
			t.Errorf("trajectory ended as %v", ended)
		}
		f.set(func(f *fakeSandboxes) {
			if n := f.runs["breaks"]; n != 2 {
				t.Errorf("the program that breaks sandboxes was run %d times, want 2", n)
			}
		})
	})
}

func TestARequestThatSandboxdRefusesEndsItsTrajectory(t *testing.T) {
	kafkatest.Run(t, func(w *kafkatest.World) {
		f := &fakeSandboxes{slots: 1, program: func(code string, _ int) (client.Result, time.Duration, error) {
			if code == "large" {
				return client.Result{}, 0, &client.RequestError{Code: "bad_request", Message: "code is too large"}
			}
			return printed(""), 0, nil
		}}
		s, _ := start(w, f)
		defer s.Stop()
		put(w, codeCall(0, "large"), codeCall(1, "small"))
		w.Await("code-results", 1)
		ended := w.Await("trajectories", 1)[0].(*sluicev1.Trajectory)
		if ended.GetEndReason() != sluicev1.EndReason_END_REASON_INFRA_ERROR || !strings.Contains(ended.GetEndDetail(), "too large") {
			t.Errorf("trajectory ended as %v", ended)
		}
	})
}

func TestManyCallsOnFewSlotsWaitAndNoneTimesOut(t *testing.T) {
	kafkatest.Run(t, func(w *kafkatest.World) {
		f := &fakeSandboxes{slots: 8, program: func(string, int) (client.Result, time.Duration, error) { return printed("1\n"), 2 * time.Second, nil }}
		s, _ := start(w, f)
		defer s.Stop()
		var calls []*sluicev1.CodeCall
		for i := range 256 {
			calls = append(calls, codeCall(i, fmt.Sprint(i)))
		}
		put(w, calls...)
		got := executions(w.Await("code-results", 256))
		w.Settle("code-results")
		for id, e := range got {
			if e.GetOutcome() != sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_OK || e.GetDelivery() != 1 {
				t.Errorf("%s: %v at delivery %d", id, e.GetOutcome(), e.GetDelivery())
			}
		}
		if len(got) != 256 || f.most > 8 {
			t.Errorf("%d calls answered, at most %d ran at once; want 256 and 8", len(got), f.most)
		}
	})
}

func TestSandboxdAwayAtStartAndForAMinuteLosesNothing(t *testing.T) {
	kafkatest.Run(t, func(w *kafkatest.World) {
		gone := errors.New("dial unix: no such file")
		f := &fakeSandboxes{slots: 4, away: gone, program: func(string, int) (client.Result, time.Duration, error) { return printed("1\n"), time.Millisecond, nil }}
		s, env := start(w, f)
		defer s.Stop()
		put(w, codeCall(0, "before"))
		time.Sleep(time.Minute)
		if env.Health.IsReady() {
			t.Error("ready though sandboxd is away")
		}
		f.set(func(f *fakeSandboxes) { f.away = nil })
		w.Await("code-results", 1)
		f.set(func(f *fakeSandboxes) { f.away = gone })
		f.restart()
		for i := range 20 {
			put(w, codeCall(i+1, fmt.Sprint(i)))
		}
		time.Sleep(time.Minute)
		f.set(func(f *fakeSandboxes) { f.away = nil })
		if got := len(executions(w.Await("code-results", 21))); got != 21 {
			t.Errorf("%d different calls answered, want 21", got)
		}
		if n := len(w.Settle("trajectories")) + len(w.Settle("dead-letters")); n != 0 {
			t.Errorf("%d trajectories or dead letters, want none", n)
		}
		if !env.Health.IsReady() {
			t.Error("not ready though sandboxd is back")
		}
	})
}

func TestReservationsAreGivenBack(t *testing.T) {
	kafkatest.Run(t, func(w *kafkatest.World) {
		f := &fakeSandboxes{slots: 4, program: func(string, int) (client.Result, time.Duration, error) { return printed(""), time.Millisecond, nil }}
		s, _ := start(w, f)
		for i := range 40 {
			put(w, codeCall(i, fmt.Sprint(i)))
		}
		w.Await("code-results", 40)
		s.Stop()
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.taken) != 0 {
			t.Errorf("%d reservations left after the stage stopped", len(f.taken))
		}
	})
}

// A slot whose connection broke is given its own place back, though sandboxd has no
// other; no slot of this or another process takes it away.
func TestASlotTakesItsOwnPlaceBack(t *testing.T) {
	f := &fakeSandboxes{slots: 2}
	ps := newPlaces(f, slog.New(slog.DiscardHandler), newMetrics(prometheus.NewRegistry()), func(string, error) {})
	other := newPlaces(f, slog.New(slog.DiscardHandler), newMetrics(prometheus.NewRegistry()), func(string, error) {})
	first, err := ps.reserve(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	second, err := other.reserve(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	again, err := ps.reserve(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[*place]bool{first.(*place): true, second.(*place): false, again.(*place): false} {
		lost := false
		select {
		case <-name.Lost():
			lost = true
		default:
		}
		if lost != want {
			t.Errorf("slot %d of %s: lost %v, want %v", name.slot, name.places.process, lost, want)
		}
	}
}

// sandboxd hears which trajectory a program belongs to, and never a part of a name,
// which might be another's.
func TestTrajectoryOfARequest(t *testing.T) {
	place := func(run string, sample uint32, copy uint64) *sluicev1.Trajectory {
		return &sluicev1.Trajectory{Prompt: &sluicev1.Prompt{Group: &sluicev1.GroupPlace{RunId: run}}, SampleIndex: sample, Copy: copy}
	}
	seen := map[string]bool{}
	for _, t2 := range []*sluicev1.Trajectory{place("a", 0, 1), place("a", 1, 1), place("b", 0, 1), place("a", 0, 2)} {
		name := trajectory(t2)
		if name == "" || seen[name] {
			t.Errorf("trajectory %v is called %q", t2, name)
		}
		seen[name] = true
	}
	if name := trajectory(place(strings.Repeat("r", 300), 0, 1)); name != "" {
		t.Errorf("a long name became %q", name)
	}
}
