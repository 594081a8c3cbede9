package trainer

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/policy"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/ppo"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/state"
)

func wantSaid(t *testing.T, w *world, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, said(w.updates())); d != "" {
		t.Errorf("policy-updates as step:version (-want +got):\n%s", d)
	}
}

func TestEveryStepBatchIsAnswered(t *testing.T) {
	inWorld(t, func(w *world) {
		p := w.start(nil)
		w.writeStep(1)
		w.write(&sluicev1.StepBatch{RunId: run, Step: 2, N: 8, ClipLow: 0.8, ClipHigh: 1.28, TokenReduction: sluicev1.TokenReduction_TOKEN_REDUCTION_SUM})
		w.writeStep(3)
		settle()
		wantSaid(t, w, "1:1", "2:1", "3:2")
		us, rs := w.updates(), w.reports()
		for i, trained := range []bool{true, false, true} {
			if us[i].GetTrained() != trained || rs[i].GetSkipped() == trained || us[i].GetInferenceUrl() != url || us[i].GetModel() != "simpolicy" {
				t.Errorf("answer %d: update %v, report %v; want trained %t", i, us[i], rs[i], trained)
			}
			if rs[i].GetPolicyVersion() != us[i].GetPolicyVersion() {
				t.Errorf("answer %d: report of version %d, update of %d", i, rs[i].GetPolicyVersion(), us[i].GetPolicyVersion())
			}
		}
		if r := rs[0]; r.GetData() != 8 || r.GetLossTokens() == 0 || r.GetEntropy() <= 0 || r.GetGradientNorm() <= 0 || r.GetRatioMax() < 1 {
			t.Errorf("report of a trained step: %v", r)
		}
		if h := p.handedOver(); len(h) != 3 || h[2].Version != 2 {
			t.Errorf("handed to the server: %d snapshots, want 3, the last of version 2", len(h))
		}
		if err := p.isReady(); err != nil {
			t.Errorf("ready: %v, want nil", err)
		}
		p.stop()
	})
}

func TestFrozenAnswersAndChangesNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		p := w.start(func(c *Config) { c.Freeze = true })
		w.writeStep(1)
		w.writeStep(2)
		settle()
		p.stop()
		wantSaid(t, w, "1:0", "2:0")
		if d := cmp.Diff(policy.Initial(), w.saved().Parameters); d != "" {
			t.Errorf("parameters changed:\n%s", d)
		}
		if r := w.reports()[0]; !r.GetSkipped() || r.GetExtra()["frozen"] != 1 || r.GetLossTokens() == 0 {
			t.Errorf("report: %v, want skipped, frozen, and measured all the same", r)
		}
	})
}

// Whatever two steps a crash falls between: nothing is trained twice, nothing is left
// unanswered, and the parameters are those of a run without a crash.
func TestCrashBetweenAnyTwoSteps(t *testing.T) {
	var want state.State
	inWorld(t, func(w *world) {
		p := w.start(nil)
		for n := range uint64(3) {
			w.writeStep(n + 1)
		}
		settle()
		p.stop()
		want = w.saved()
	})
	for _, at := range []string{"trained", "saved", "handed", "reported", "updated", "marked"} {
		t.Run("after "+at, func(t *testing.T) {
			inWorld(t, func(w *world) {
				for n := range uint64(3) {
					w.writeStep(n + 1)
				}
				count := 0
				p := w.start(func(c *Config) {
					c.Reached = func(step string) error {
						if step == at {
							count++
						}
						if count == 2 {
							return errCrash
						}
						return nil
					}
				})
				p.end(errCrash)
				p = w.start(nil)
				settle()
				p.stop()
				got := w.saved()
				if got.PolicyVersion != 3 || got.Optimizer.Steps != 3*ppo.Defaults().Epochs {
					t.Errorf("version %d after %d steps of Adam, want 3 after %d", got.PolicyVersion, got.Optimizer.Steps, 3*ppo.Defaults().Epochs)
				}
				if d := cmp.Diff(want.Parameters, got.Parameters); d != "" {
					t.Errorf("parameters differ from those of a run without a crash:\n%s", d)
				}
				us := said(w.updates())
				for _, u := range []string{"1:1", "2:2", "3:3"} {
					if !slices.Contains(us, u) {
						t.Errorf("updates %v lack %s", us, u)
					}
				}
				if !slices.IsSorted(us) || len(us) > 4 {
					t.Errorf("updates %v: want them in order, at most one said again", us)
				}
				steps := map[uint64]uint32{}
				for _, r := range w.reports() {
					steps[r.GetStep()] = r.GetPolicyVersion()
				}
				if d := cmp.Diff(map[uint64]uint32{1: 1, 2: 2, 3: 3}, steps); d != "" {
					t.Errorf("reports by step (-want +got):\n%s", d)
				}
			})
		})
	}
}

func TestAStepSeenAgainIsAnsweredAgainAlike(t *testing.T) {
	inWorld(t, func(w *world) {
		p := w.start(nil)
		w.writeStep(1)
		w.writeStep(2)
		settle()
		w.writeStep(1)
		settle()
		p.stop()
		wantSaid(t, w, "1:1", "2:2", "1:1")
		if got := w.saved(); got.PolicyVersion != 2 || len(got.Answers) != 2 {
			t.Errorf("version %d, %d answers; want 2 and 2", got.PolicyVersion, len(got.Answers))
		}
	})
}

func TestResumesWhereItStopped(t *testing.T) {
	inWorld(t, func(w *world) {
		p := w.start(nil)
		// Step 2 is open while step 1 is saved: its beginning must be read again.
		sb, micro := w.step(2)
		w.write(sb, micro[0])
		w.writeStep(1)
		settle()
		p.stop()
		w.write(micro[1])
		p = w.start(func(c *Config) { c.InferenceURL = "http://127.0.0.1:8001" })
		settle()
		p.stop()
		// Step 1 is said again at the start, for the server may be elsewhere now, and
		// when it is read again on the way to step 2.
		wantSaid(t, w, "1:1", "1:1", "1:1", "2:2")
		if u := w.updates()[1]; u.GetInferenceUrl() != "http://127.0.0.1:8001" {
			t.Errorf("update after the restart names %q", u.GetInferenceUrl())
		}
	})
}

func TestAnotherIncarnation(t *testing.T) {
	inWorld(t, func(w *world) {
		p := w.start(nil)
		w.writeStep(1)
		w.writeStep(2)
		settle()
		sb, micro := w.step(2)
		sb.Incarnation = 1
		w.write(sb)
		for _, m := range micro {
			m.Incarnation = 1
			w.write(m)
		}
		w.writeStep(3) // of the incarnation that is over
		settle()
		p.stop()
		wantSaid(t, w, "1:1", "2:2", "2:3")
	})
}

func TestWhatIsNotForThisRunOrNotCommittedIsNotRead(t *testing.T) {
	inWorld(t, func(w *world) {
		p := w.start(nil)
		sb, micro := w.step(1)
		other := &sluicev1.StepBatch{RunId: "other", Step: 7, ClipLow: 0.8, ClipHigh: 1.28, TokenReduction: sluicev1.TokenReduction_TOKEN_REDUCTION_SUM}
		w.write(other)
		tx := w.client(kgo.TransactionalID("torn"))
		if err := tx.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		for _, r := range []*kgo.Record{w.encode(sb), w.encode(micro[0]), w.encode(micro[1])} {
			if err := tx.ProduceSync(context.Background(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		if err := tx.EndTransaction(context.Background(), kgo.TryAbort); err != nil {
			t.Fatal(err)
		}
		tx.Close()
		settle()
		wantSaid(t, w)
		w.writeStep(1)
		settle()
		p.stop()
		wantSaid(t, w, "1:1")
	})
}

func TestARecordThatCannotBeReadDoesNotStallTheRun(t *testing.T) {
	inWorld(t, func(w *world) {
		p := w.start(nil)
		sb, micro := w.step(1)
		w.write(sb, micro[0])
		broken := w.encode(micro[1])
		broken.Value = []byte("\xff not protobuf")
		w.writeRecord(broken)
		w.writeStep(2)
		settle()
		p.stop()
		wantSaid(t, w, "1:0", "2:1")
		if r := w.reports()[0]; !r.GetSkipped() || r.GetExtra()["unreadable_records"] != 1 {
			t.Errorf("report: %v, want it skipped and one unreadable record", r)
		}
	})
}

func TestABatchOfAnotherTokenizerIsAnsweredUntrained(t *testing.T) {
	inWorld(t, func(w *world) {
		p := w.start(nil)
		sb, micro := w.step(1)
		micro[0].Data[0].TargetTokens = slices.Clone(micro[0].Data[0].TargetTokens)
		copy(micro[0].Data[0].TargetTokens[tokens.Size:], tokens.IDs(1<<30))
		w.write(sb, micro[0], micro[1])
		settle()
		p.stop()
		wantSaid(t, w, "1:0")
	})
}

func TestMicroBatchesTwiceOrAloneAreDropped(t *testing.T) {
	inWorld(t, func(w *world) {
		p := w.start(nil)
		sb, micro := w.step(1)
		w.write(micro[1], sb, micro[1], micro[1], micro[0], micro[0])
		settle()
		p.stop()
		wantSaid(t, w, "1:1")
	})
}

func TestWaitsForAnAbsentBrokerAndThroughARestart(t *testing.T) {
	inWorld(t, func(w *world) {
		w.broker.Close()
		p := w.start(nil)
		time.Sleep(time.Minute)
		if p.isReady() == nil {
			t.Error("ready though there is no broker")
		}
		w.startBroker()
		w.writeStep(1)
		settle()
		if err := p.isReady(); err != nil {
			t.Errorf("ready: %v, want nil once the broker is there", err)
		}
		w.broker.Close()
		time.Sleep(time.Minute)
		w.startBroker()
		w.writeStep(2)
		time.Sleep(time.Minute)
		p.stop()
		wantSaid(t, w, "1:1", "2:2")
	})
}

func TestWaitsForTheTopic(t *testing.T) {
	inWorld(t, func(w *world) {
		const late = "late."
		p := w.start(func(c *Config) { c.Namespace = late })
		time.Sleep(time.Minute)
		if p.isReady() == nil {
			t.Error("ready though the topic is not there")
		}
		p.cancel()
		p.end(nil)
	})
}
