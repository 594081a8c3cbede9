package vectors

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
)

// tolerance is for sums whose order the record does not say.
const tolerance = 1e-9

func (b *batch) compareMetrics() error {
	got := b.metrics()
	for _, name := range slices.Sorted(maps.Keys(b.want.Metrics)) {
		have, known := got[name]
		if !known {
			return fmt.Errorf("metric %s is not known to this test", name)
		}
		if want := b.want.Metrics[name]; math.Abs(have-want) > tolerance {
			return fmt.Errorf("metric %s is %v, want %v", name, have, want)
		}
	}
	return nil
}

// metrics are the recipe's. Denominators: all trajectories of the batch for reward/*
// and rollout/*, but turns that hold <tool_call> for valid_tool_call_rate (0 if there
// are none) and groups for degenerate_group_rate; one batch for train/*, but data for
// mean_datum_tokens. trajectory_tokens counts up to the end of the last turn.
func (b *batch) metrics() map[string]float64 {
	m := map[string]float64{}
	var tags float64
	for _, s := range b.scored {
		t := s.GetTrajectory()
		m["reward/mean"] += s.GetReward()
		m["reward/correct"] += number(s.GetCorrect())
		m["reward/format"] += number(s.GetValidFormat())
		m["rollout/turns"] += float64(len(t.GetTurns()))
		m["rollout/code_calls"] += float64(t.GetCodeCalls())
		total := tokens.Count(t.GetPromptTokens())
		for i, turn := range t.GetTurns() {
			total += tokens.Count(turn.GetTokens())
			if i < len(t.GetTurns())-1 {
				total += tokens.Count(turn.GetGlueTokens())
			}
			tags += number(strings.Contains(turn.GetText(), "<tool_call>"))
		}
		m["rollout/trajectory_tokens"] += float64(total)
	}
	calls := m["rollout/code_calls"]
	for name := range m {
		m[name] /= float64(len(b.scored))
	}
	m["rollout/valid_tool_call_rate"] = ratio(calls, tags)
	for _, g := range b.groups {
		m["rollout/degenerate_group_rate"] += number(g.GetClosing() == sluicev1.Closing_CLOSING_DEGENERATE) / float64(len(b.groups))
	}

	m["train/datums_per_rollout_batch"] = float64(b.out.GetData())
	m["train/micro_batches_per_step"] = float64(b.out.GetMicroBatches())
	m["train/loss_tokens_per_rollout_batch"] = float64(b.out.GetLossTokens())
	m["train/padded_tokens_per_rollout_batch"] = float64(b.out.GetPaddedTokens())
	m["train/max_micro_batch_padded_tokens"] = 0
	var inData float64
	for _, micro := range b.micro {
		m["train/max_micro_batch_padded_tokens"] = max(m["train/max_micro_batch_padded_tokens"], float64(micro.GetPaddedTokens()))
		for _, d := range micro.GetData() {
			inData += float64(tokens.Count(d.GetInputTokens()))
		}
	}
	m["train/tokens_per_rollout_batch"] = inData
	m["train/mean_datum_tokens"] = ratio(inData, float64(b.out.GetData()))
	return m
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
