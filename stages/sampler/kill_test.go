package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/internal/testkit/kafkatest"
	"github.com/sluice-rl/sluice/stages/sampler/inference/inferencetest"
)

// A sampler is killed at one moment or another of its work; the next one goes on. Every
// member that was fed comes out.
func TestAKilledSamplerLosesNoMember(t *testing.T) {
	kafkatest.NeedsVirtualLocks(t)
	for _, after := range []time.Duration{0, 100 * time.Millisecond, 700 * time.Millisecond, 1500 * time.Millisecond, 5 * time.Second} {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			kafkatest.Run(t, func(w *kafkatest.World) {
				fake := &inferencetest.Fake{Latency: 400 * time.Millisecond, Policy: func(a inferencetest.Ask) []inferencetest.Answer {
					if a.N == 1 {
						return each(inferencetest.Answer{Raw: `\boxed{42}<|im_end|>`})(a)
					}
					return each(inferencetest.Answer{Raw: call}, inferencetest.Answer{Raw: `\boxed{41}`})(a)
				}}
				const slots = 30
				for slot := range uint32(slots) {
					w.Put(kafka.Output{Topic: "prompts", Body: prompt(1, slot)})
				}
				first, env := prepare(w, fake)
				line := w.Mortal(env, uint64(after))
				running := w.Start(first.run, env)
				time.Sleep(after)
				running.Kill(line)

				second, _ := start(w, fake)
				defer second.Stop()
				// The executor answers each call once, whoever asked for it.
				answered := 0
				places := map[identity.Place]bool{}
				for minute := 0; len(places) < 4*slots && minute < 20; minute++ {
					w.Settle("trajectories")
					calls := w.Await("code-calls", answered)
					execute(w, calls[answered:], "42\n")
					answered = len(calls)
					for _, tr := range trajectories(w.Await("trajectories", 0)) {
						places[identity.PlaceOf(tr)] = true
						if tr.GetEndReason() != sluicev1.EndReason_END_REASON_ANSWER {
							t.Errorf("%s ended as %s: %s", identity.TrajectoryID(tr), reason(tr), tr.GetEndDetail())
						}
					}
				}
				if len(places) != 4*slots {
					t.Errorf("%d members came out, want %d", len(places), 4*slots)
				}
				if n := len(w.Settle("dead-letters")); n != 0 {
					t.Errorf("%d dead letters, want none", n)
				}
			})
		})
	}
}
