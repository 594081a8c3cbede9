package integration

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// The size of a run: small enough for CI, with work in flight while stages are killed.
const (
	steps     = 20
	problems  = 2
	groupSize = 4
)

func runFlags(more ...string) []string {
	return append([]string{
		"--steps", strconv.Itoa(steps), "--problems-per-step", strconv.Itoa(problems), "--group-size", strconv.Itoa(groupSize),
		"--seed", "7", "--executor-slots", "2", "--drain", "3m", "--ready-within", patience.String(),
	}, more...)
}

// stagesKilled is every stage; the feeder first, since it has nothing to do near the
// end.
var stagesKilled = strings.Fields("prompt-feeder sampler code-executor reward-scorer advantage-grouper ppo-batcher metrics-writer")

// TestTheLoopLosesNothing runs the loop with each way to get services, kills every
// stage once in mid-run, and compares what was fed with what is there in the end.
func TestTheLoopLosesNothing(t *testing.T) {
	for _, way := range []struct {
		name     string
		services func(testing.TB) *services
		// more is killed too, where the run owns it.
		more []string
	}{
		{"embedded", embedded, []string{"simpolicy", "sandboxd", "sluice-broker"}},
		{"addresses", addresses, nil},
		{"containers", containers, nil},
	} {
		t.Run(way.name, func(t *testing.T) {
			binary(t, "sluice")
			s := way.services(t)
			garbage := len(s.brokers) > 0
			if garbage {
				s.feedGarbage(t)
			}
			dir := filepath.Dir(reachable(t))
			u := startUp(t, filepath.Join(dir, "run"), append(runFlags(), s.flags...)...)
			u.says("step 1 of")
			for _, stage := range append(append([]string(nil), stagesKilled...), way.more...) {
				if u.over() {
					t.Fatalf("the run was over before %s was killed: make it longer", stage)
				}
				u.kill(stage)
			}
			if s.kafka != nil {
				if u.over() {
					t.Fatal("the run was over before Kafka was killed: make it longer")
				}
				s.kafka.Crash()
			}
			u.finished(2 * patience)
			s.inspect(t, u.dir)
			s.verify(t, u.runID(), garbage)
			checkSummary(t, u)
			if left := processesOf(u.dir + "/"); !ours(left) {
				t.Errorf("left running:\n%s", strings.Join(left, "\n"))
			}
		})
	}
}

// over tells that the last step was answered: nothing in flight is left to lose.
func (u *up) over() bool {
	return strings.Contains(u.out.String(), "step "+strconv.Itoa(steps)+" of")
}

// ours: only the binaries that inspect started may still run on the directory.
func ours(left []string) bool {
	for _, p := range left {
		if !strings.Contains(p, "sluice-broker") && !strings.Contains(p, "sluice-clickhouse") {
			return false
		}
	}
	return true
}

// feedGarbage makes the topics and writes records that nobody can read.
func (s *services) feedGarbage(t testing.TB) {
	t.Helper()
	apply := exec.Command(binary(t, "sluice"), "apply", "--brokers", strings.Join(s.brokers, ","), "--namespace", s.namespace)
	if out, err := apply.CombinedOutput(); err != nil {
		t.Fatalf("sluice apply: %v\n%s", err, out)
	}
	cl := s.client(t)
	ctx := within(t)
	for _, topic := range []string{"prompts", "code-calls", "trajectories"} {
		r := &kgo.Record{Topic: s.namespace + topic, Key: []byte("garbage"), Value: []byte("\x1b[2Jnot a record of ours\xff")}
		if err := cl.ProduceSync(ctx, r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *services) client(t testing.TB, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(s.brokers...)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// checkSummary looks at summary.json as its readers do.
func checkSummary(t testing.TB, u *up) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(u.dir, "summary.json"))
	if err != nil {
		t.Fatal(err)
	}
	var sum struct {
		Steps []struct {
			Step       uint64   `json:"step"`
			RewardMean *float64 `json:"reward_mean"`
			Skipped    *bool    `json:"update_skipped"`
		} `json:"steps"`
		Trajectories uint64  `json:"trajectories"`
		Seconds      float64 `json:"seconds"`
	}
	if err := json.Unmarshal(b, &sum); err != nil {
		t.Fatal(err)
	}
	if len(sum.Steps) != steps || sum.Trajectories != steps*problems*groupSize || sum.Seconds <= 0 {
		t.Errorf("summary.json has %d steps, %d trajectories, %v s; want %d, %d and above 0", len(sum.Steps), sum.Trajectories, sum.Seconds, steps, steps*problems*groupSize)
	}
	for i, s := range sum.Steps {
		if s.Step != uint64(i+1) || s.RewardMean == nil || *s.RewardMean < -1 || *s.RewardMean > 1 || s.Skipped == nil {
			t.Errorf("summary.json, step %d: %+v", i+1, s)
		}
	}
}

// TestCtrlCAndGoingOn: an interrupted run leaves no process and goes on where it
// stopped; a second `up` on the directory is refused; a finished run is followed by
// another.
func TestCtrlCAndGoingOn(t *testing.T) {
	binary(t, "sluice")
	dir := filepath.Join(filepath.Dir(reachable(t)), "run")
	first := startUp(t, dir, runFlags()...)
	first.says("step 1 of")
	id := first.runID()
	checkLivePages(t, first)

	second := startUp(t, dir, runFlags()...)
	if got := second.status(patience); got != 3 || !strings.Contains(second.out.String(), "another `sluice up`") {
		t.Errorf("a second up on the directory: status %d, said %q; want 3", got, second.out)
	}

	first.signal(syscall.SIGINT)
	if got := first.status(patience); got != 130 {
		t.Errorf("status %d after Ctrl-C, want 130; it said:\n%s", got, first.out)
	}
	if left := processesOf(dir + "/"); len(left) > 0 {
		t.Errorf("left running after Ctrl-C:\n%s", strings.Join(left, "\n"))
	}

	third := startUp(t, dir, runFlags()...)
	third.says("going on with run " + id)
	third.finished(2 * patience)
	checkSummary(t, third)
	s := embedded(t)
	t.Run("what was fed is there", func(t *testing.T) {
		s.inspect(t, dir)
		s.verify(t, id, false)
	})
	t.Run("its pages can be opened again", func(t *testing.T) { checkPagesOfTheDead(t, dir, id) })

	fourth := startUp(t, dir, runFlags()...)
	fourth.says("ready after")
	if fourth.runID() == id {
		t.Errorf("the finished run %s was taken up again, want a new one", id)
	}
	// The second signal stops hard, and still leaves nothing.
	fourth.signal(syscall.SIGINT)
	time.Sleep(50 * time.Millisecond)
	fourth.signal(syscall.SIGINT)
	if got := fourth.status(patience); got != 4 && got != 130 {
		t.Errorf("status %d after two signals, want 4 (or 130 if the first was enough)", got)
	}
	if left := processesOf(dir + "/"); len(left) > 0 {
		t.Errorf("left running after a hard stop:\n%s", strings.Join(left, "\n"))
	}
}
