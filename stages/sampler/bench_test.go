package main

import (
	"context"
	"fmt"
	"testing"

	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/internal/testkit/kafkatest"
	"github.com/sluice-rl/sluice/stages/sampler/inference/inferencetest"
)

// BenchmarkPrompts samples groups of eight from a fake server that takes no time: each
// answers at its first turn. One iteration is one group.
func BenchmarkPrompts(b *testing.B) {
	for _, tokens := range []int{20, 500} {
		b.Run(fmt.Sprintf("tokens=%d", tokens), func(b *testing.B) {
			kafkatest.RunReal(b, func(w *kafkatest.World) {
				text := make([]byte, tokens)
				for i := range text {
					text[i] = 'a' + byte(i%26)
				}
				s, _ := start(w, &inferencetest.Fake{Policy: each(inferencetest.Answer{Raw: string(text)})})
				defer s.Stop()
				p, err := kafka.NewProducer(context.Background(), w.Cluster(), "bench")
				if err != nil {
					b.Fatal(err)
				}
				defer p.Close()
				first := prompt(1, 0)
				first.GroupSize = 8
				if err := p.Produce(context.Background(), kafka.Output{Topic: "prompts", Body: first}); err != nil {
					b.Fatal(err)
				}
				w.Await("trajectories", 8)
				prompts := make([]kafka.Output, b.N)
				for i := range prompts {
					one := prompt(2, uint32(i))
					one.GroupSize, one.GroupsInStep = 8, uint32(b.N)
					prompts[i] = kafka.Output{Topic: "prompts", Body: one}
				}
				b.ResetTimer()
				if err := p.Produce(context.Background(), prompts...); err != nil {
					b.Fatal(err)
				}
				w.Await("trajectories", 8*(b.N+1))
				b.ReportMetric(float64(8*b.N)/b.Elapsed().Seconds(), "trajectories/s")
			})
		})
	}
}
