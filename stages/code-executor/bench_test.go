package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/client"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/internal/testkit/kafkatest"
)

// instant is a stub for sandboxd whose programs take no time: what is left is what the
// pipeline itself costs.
func instant(slots int) *fakeSandboxes {
	return &fakeSandboxes{slots: slots, program: func(string, int) (client.Result, time.Duration, error) { return printed("42\n"), 0, nil }}
}

// benchCall is a call whose record is about 40 kB, as in the middle of a trajectory.
func benchCall(n int) *sluicev1.CodeCall {
	c := codeCall(n, strings.Repeat("x = 1\n", 100))
	turn := c.GetTrajectory().GetTurns()[0]
	for range 4000 {
		turn.Tokens = tokens.AppendIDs(turn.Tokens, 50_000)
		turn.Logprobs = tokens.AppendFloats(turn.Logprobs, -1)
		turn.Versions = tokens.AppendVersion(turn.Versions, 3, 1)
	}
	return c
}

// BenchmarkToolCall is one call at a time, from before it is produced until its result
// has been consumed: what a tool call adds to a trajectory, the program apart.
func BenchmarkToolCall(b *testing.B) {
	kafkatest.RunReal(b, func(w *kafkatest.World) {
		s, p := benchExecutor(b, w, 8)
		defer s.Stop()
		defer p.Close()
		took := make([]time.Duration, 0, b.N)
		calls := make([]kafka.Output, b.N)
		for i := range calls {
			calls[i] = kafka.Output{Topic: "code-calls", Body: benchCall(i + 1), RoundRobin: true}
		}
		b.ResetTimer()
		for i := range b.N {
			begin := time.Now()
			if err := p.Produce(context.Background(), calls[i]); err != nil {
				b.Fatal(err)
			}
			w.Await("code-results", i+2)
			took = append(took, time.Since(begin))
		}
		b.StopTimer()
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	})
}

// BenchmarkCalls is many calls at once.
func BenchmarkCalls(b *testing.B) {
	for _, slots := range []int{1, 8} {
		b.Run(fmt.Sprintf("slots=%d", slots), func(b *testing.B) {
			kafkatest.RunReal(b, func(w *kafkatest.World) {
				s, p := benchExecutor(b, w, slots)
				defer s.Stop()
				defer p.Close()
				calls := make([]kafka.Output, b.N)
				for i := range calls {
					calls[i] = kafka.Output{Topic: "code-calls", Body: benchCall(i + 1), RoundRobin: true}
				}
				b.ResetTimer()
				if err := p.Produce(context.Background(), calls...); err != nil {
					b.Fatal(err)
				}
				w.Await("code-results", b.N+1)
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
			})
		})
	}
}

// benchExecutor starts an executor and sees one call through it.
func benchExecutor(b *testing.B, w *kafkatest.World, slots int) (*kafkatest.Running, *kafka.Producer) {
	s, _ := start(w, instant(slots))
	p, err := kafka.NewProducer(context.Background(), w.Cluster(), "bench")
	if err != nil {
		b.Fatal(err)
	}
	if err := p.Produce(context.Background(), kafka.Output{Topic: "code-calls", Body: benchCall(0), RoundRobin: true}); err != nil {
		b.Fatal(err)
	}
	w.Await("code-results", 1)
	return s, p
}
