package trainer

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/ppo"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/state"
)

// train makes the state after a step, with its answer in it. It changes nothing
// outside; the state given stays as it is.
func (t *Trainer) train(now func() time.Time, before state.State, o *open) (state.State, error) {
	began := now()
	after := before
	report := &sluicev1.TrainerReport{
		RunId: o.step.GetRunId(), Incarnation: o.step.GetIncarnation(), Step: o.step.GetStep(),
		Skipped: true, Extra: map[string]float64{},
	}
	switch {
	case o.broken > 0:
		report.Extra["unreadable_records"] = float64(o.broken)
	case o.step.GetMicroBatches() == 0:
	default:
		params, opt, r, err := ppo.Step(t.cfg.PPO, t.policy, before.Parameters, before.Optimizer, o.step, o.batches())
		if err != nil {
			// The batch is not of this policy: it is answered, untrained.
			t.log.Error("step cannot be trained on", "step", o.step.GetStep(), "incarnation", o.step.GetIncarnation(), "error", err)
			report.Extra["refused"] = 1
			break
		}
		fill(report, r)
		report.Extra["learning_rate"] = t.cfg.PPO.LearningRate
		report.Extra["epochs"] = float64(t.cfg.PPO.Epochs)
		if t.cfg.Freeze {
			report.Extra["frozen"] = 1
			break
		}
		report.Skipped = false
		after.Parameters, after.Optimizer = params, opt
		after.PolicyVersion++
	}
	report.PolicyVersion = after.PolicyVersion
	report.ReportedAt = timestamppb.New(now())
	report.DurationMs = float64(now().Sub(began)) / float64(time.Millisecond)
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(report)
	if err != nil {
		return before, fmt.Errorf("encode report: %w", err)
	}
	after.Answers = append([]state.Answer(nil), before.Answers...)
	after.Append(state.Answer{
		Incarnation: o.step.GetIncarnation(), Step: o.step.GetStep(), PolicyVersion: after.PolicyVersion,
		Trained: !report.Skipped, Report: encoded,
	})
	return after, nil
}

func fill(report *sluicev1.TrainerReport, r ppo.Report) {
	report.Loss, report.Entropy, report.GradientNorm = r.Loss, r.Entropy, r.GradientNorm
	report.RatioMean, report.RatioMax = r.RatioMean, r.RatioMax
	report.ClipFractionLow, report.ClipFractionHigh = r.ClipLow, r.ClipHigh
	report.Data, report.LossTokens = uint32(r.Data), uint64(r.LossTokens)
	report.Extra["decision_tokens"] = float64(r.DecisionTokens)
	report.Extra["foreign_tokens"] = float64(r.ForeignTokens)
	report.Extra["first_epoch_ratio_off_one_max"] = r.FirstRatioMax
}
