package main

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/internal/testkit/kafkatest"
	"github.com/sluice-rl/sluice/stages/ppo-batcher/step"
)

// On a broker, killed again and again at any moment: one StepBatch per step, directly
// followed on its partition by the micro-batches that it announces.
func TestKilledAtAnyMoment(t *testing.T) {
	kafkatest.NeedsVirtualLocks(t)
	for seed := range uint64(4) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			kafkatest.Run(t, func(w *kafkatest.World) { killedAtAnyMoment(w, seed) })
		})
	}
}

func killedAtAnyMoment(w *kafkatest.World, seed uint64) {
	const runs, steps, groups = 2, 6, 4
	rng := rand.New(rand.NewPCG(seed, 1))
	// Two runs, each of steps that overlap; a partition keeps its order.
	queues := make([][]proto.Message, runs)
	for r := range queues {
		var open [][]proto.Message
		for stepNo := uint64(1); stepNo <= steps; stepNo++ {
			for slot := range uint32(groups) {
				open = append(open, group(fmt.Sprintf("run%d", r), stepNo, slot, groups, sluicev1.Mode_MODE_TRAIN))
			}
			for len(open) > groups/2 || stepNo == steps && len(open) > 0 {
				i := rng.IntN(len(open))
				queues[r] = append(queues[r], open[i]...)
				open = append(open[:i], open[i+1:]...)
			}
		}
	}
	var records []kafka.Output
	for len(queues[0])+len(queues[1]) > 0 {
		if r := rng.IntN(runs); len(queues[r]) > 0 {
			records = append(records, kafka.Output{Topic: "grouped", Body: queues[r][0]})
			queues[r] = queues[r][1:]
		}
	}

	o := config{rules: step.DefaultRules, stepsKept: 10}
	running := w.Ordeal(rng, "ppo-batcher", o.run, records)
	defer running.Stop()

	batched, expected := map[string]int{}, map[string]uint32{}
	for _, m := range w.Settle("ppo-batches") {
		switch m := m.(type) {
		case *sluicev1.StepBatch:
			id := fmt.Sprintf("%s/%d", m.GetRunId(), m.GetStep())
			batched[id]++
			expected[id] = m.GetMicroBatches()
			if m.GetData() != 2*groups || m.GetN() != 2*groups {
				w.T.Errorf("step %s has %d data, N %d; want %d of each", id, m.GetData(), m.GetN(), 2*groups)
			}
		case *sluicev1.MicroBatch:
			id := fmt.Sprintf("%s/%d", m.GetRunId(), m.GetStep())
			if expected[id] == 0 {
				w.T.Errorf("a micro-batch of step %s that was not announced", id)
			}
			expected[id]--
		}
	}
	for r := range runs {
		for stepNo := 1; stepNo <= steps; stepNo++ {
			id := fmt.Sprintf("run%d/%d", r, stepNo)
			if batched[id] != 1 || expected[id] != 0 {
				w.T.Errorf("step %s was batched %d times, %d of its micro-batches missing", id, batched[id], expected[id])
			}
		}
	}
}
