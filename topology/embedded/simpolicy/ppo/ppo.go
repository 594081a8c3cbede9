package ppo

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/policy"
)

// ErrBatch: a step's micro-batches are not what its StepBatch announced.
var ErrBatch = errors.New("micro-batches do not fit their StepBatch, or cannot be trained on")

// Config is how a step is trained.
type Config struct {
	// LearningRate is Adam's, in logits per epoch.
	LearningRate float64
	// Epochs is the number of gradient steps on one StepBatch.
	Epochs int
	// Temperature is the one the samples were drawn at.
	Temperature float64
}

// Defaults make a run of 20 steps of 32 samples learn clearly.
func Defaults() Config { return Config{LearningRate: 0.06, Epochs: 4, Temperature: 1} }

// Validate names the field that makes no sense.
func (c Config) Validate() error {
	switch {
	case !(c.LearningRate > 0 && c.LearningRate <= 10):
		return fmt.Errorf("learning rate is %v, want above 0 and at most 10", c.LearningRate)
	case c.Epochs < 1 || c.Epochs > 100:
		return fmt.Errorf("epochs is %d, want 1 to 100", c.Epochs)
	case !(c.Temperature >= 0.01 && c.Temperature <= 100):
		return fmt.Errorf("training temperature is %v, want 0.01 to 100", c.Temperature)
	}
	return nil
}

// Report is what a step's training was like. Means are over the policy tokens of all
// epochs, foreign ones left out.
type Report struct {
	Loss      float64 // of the first epoch
	RatioMean float64
	RatioMax  float64
	// FirstRatioMax is the greatest |ratio - 1| before the first gradient step: 0
	// where the samples are on-policy.
	FirstRatioMax float64
	// ClipLow and ClipHigh are the shares of tokens whose loss was cut off at the
	// lower bound (advantage below 0) and at the upper (above 0).
	ClipLow, ClipHigh float64
	// Entropy in nats per token, of the first epoch.
	Entropy float64
	// GradientNorm of the first epoch.
	GradientNorm float64
	Data         int
	LossTokens   int
	// DecisionTokens are those that a trainable choice decided.
	DecisionTokens int
	ForeignTokens  int
}

// Check says whether the micro-batches are all that the StepBatch announced, and can be
// trained on as it says.
func Check(step *sluicev1.StepBatch, micro []*sluicev1.MicroBatch) error {
	if uint32(len(micro)) != step.GetMicroBatches() {
		return fmt.Errorf("%w: %d of %d", ErrBatch, len(micro), step.GetMicroBatches())
	}
	if c := step.GetCorrection(); c != nil {
		return fmt.Errorf("%w: it asks for a correction (%s), and the stand-in knows none: batch with --correction none", ErrBatch, c.GetKind())
	}
	for i, m := range micro {
		switch {
		case m.GetIndex() != uint32(i):
			return fmt.Errorf("%w: micro-batch %d stands at place %d", ErrBatch, m.GetIndex(), i)
		case m.GetRunId() != step.GetRunId() || m.GetIncarnation() != step.GetIncarnation() || m.GetStep() != step.GetStep():
			return fmt.Errorf("%w: micro-batch %d is of %s.%d/%d", ErrBatch, i, m.GetRunId(), m.GetIncarnation(), m.GetStep())
		}
	}
	return nil
}

// Step trains on one step's micro-batches, which stand in order of their index.
func Step(cfg Config, pol *policy.Policy, params policy.Parameters, opt Optimizer, step *sluicev1.StepBatch, micro []*sluicev1.MicroBatch) (policy.Parameters, Optimizer, Report, error) {
	if err := Check(step, micro); err != nil {
		return nil, opt, Report{}, err
	}
	params, opt = params.Clone(), opt.clone()
	turns, err := turnsOf(step, micro)
	if err != nil {
		return nil, opt, Report{}, err
	}
	var total tally
	var report Report
	for epoch := range cfg.Epochs {
		e := tally{gradient: policy.Zeros()}
		for _, t := range turns {
			if err := e.turn(cfg, pol, params, t); err != nil {
				return nil, opt, Report{}, err
			}
		}
		if epoch == 0 {
			report = e.first()
		}
		total.add(e)
		opt.apply(cfg.LearningRate, params, e.gradient)
	}
	if total.tokens > 0 {
		n := float64(total.tokens)
		report.RatioMean, report.RatioMax = total.ratio/n, total.ratioMax
		report.ClipLow, report.ClipHigh = float64(total.low)/n, float64(total.high)/n
	}
	for _, m := range micro {
		report.Data += len(m.GetData())
	}
	return params, opt, report, nil
}

// turn is one stretch of policy tokens with what came before it.
type turn struct {
	prompt, tokens []uint32
	behaviour      []float32
	advantages     []float32
	// weight is 1 over what the reduction and the mean over data divide by.
	weight    float64
	low, high float64
}

func turnsOf(step *sluicev1.StepBatch, micro []*sluicev1.MicroBatch) ([]turn, error) {
	var turns []turn
	for _, m := range micro {
		for _, d := range m.GetData() {
			weight := 1 / float64(len(m.GetData()))
			switch m.GetTokenReduction() {
			case sluicev1.TokenReduction_TOKEN_REDUCTION_SUM:
			case sluicev1.TokenReduction_TOKEN_REDUCTION_MEAN:
				weight /= float64(max(1, bytes.Count(d.GetLossMask(), []byte{1})))
			default:
				return nil, fmt.Errorf("%w: micro-batch %d: token reduction %v is not known", ErrBatch, m.GetIndex(), m.GetTokenReduction())
			}
			turns = append(turns, split(d, turn{weight: weight, low: step.GetClipLow(), high: step.GetClipHigh()})...)
		}
	}
	return turns, nil
}

// split cuts a datum into its turns. Target i of a datum follows input i, so the
// whole sequence is the first input and then all targets.
func split(d *sluicev1.Datum, like turn) []turn {
	all := append(tokens.ReadIDs(d.GetInputTokens()[:tokens.Size]), tokens.ReadIDs(d.GetTargetTokens())...)
	behaviour, advantages := tokens.ReadFloats(d.GetBehaviourLogprobs()), tokens.ReadFloats(d.GetAdvantages())
	mask := d.GetLossMask()
	var turns []turn
	for i := 0; i < len(mask); i++ {
		if mask[i] == 0 {
			continue
		}
		j := i
		for j < len(mask) && mask[j] == 1 {
			j++
		}
		t := like
		t.prompt, t.tokens = all[:i+1], all[i+1:j+1]
		t.behaviour, t.advantages = behaviour[i:j], advantages[i:j]
		turns = append(turns, t)
		i = j
	}
	return turns
}

// tally adds up one epoch.
type tally struct {
	gradient                    policy.Parameters
	loss, ratio, ratioMax, off1 float64
	entropy                     float64
	tokens, low, high           int
	decided, foreign            int
}

func (e *tally) turn(cfg Config, pol *policy.Policy, params policy.Parameters, t turn) error {
	scored, err := pol.Score(params, cfg.Temperature, t.prompt, t.tokens)
	if err != nil {
		return fmt.Errorf("score a datum: %w", err)
	}
	for i, tok := range scored {
		if tok.Foreign {
			e.foreign++
			continue
		}
		e.token(tok, float64(t.behaviour[i]), float64(t.advantages[i]), t)
	}
	return nil
}

func (e *tally) token(tok policy.Token, behaviour, advantage float64, t turn) {
	// Behaviour logprobs travel as float32: rounded alike, an unchanged policy has
	// a ratio of exactly 1.
	r := math.Exp(float64(float32(tok.Logprob)) - behaviour)
	bounded := min(max(r, t.low), t.high)
	e.tokens++
	e.ratio += r
	e.ratioMax = max(e.ratioMax, r)
	e.off1 = max(e.off1, math.Abs(r-1))
	e.entropy += tok.Entropy
	e.loss -= t.weight * min(r*advantage, bounded*advantage)
	switch {
	case advantage < 0 && r < t.low:
		e.low++
		return
	case advantage > 0 && r > t.high:
		e.high++
		return
	}
	if !tok.Decided {
		return
	}
	e.decided++
	g := e.gradient[tok.Site]
	for k, d := range tok.Gradient {
		g[k] -= t.weight * advantage * r * d
	}
}

func (e *tally) add(o tally) {
	e.ratio += o.ratio
	e.ratioMax = max(e.ratioMax, o.ratioMax)
	e.tokens += o.tokens
	e.low += o.low
	e.high += o.high
}

func (e *tally) first() Report {
	var square float64
	for _, site := range e.gradient {
		for _, g := range site {
			square += g * g
		}
	}
	return Report{
		Loss: e.loss, FirstRatioMax: e.off1, Entropy: e.entropy / float64(max(e.tokens, 1)),
		GradientNorm: math.Sqrt(square), LossTokens: e.tokens + e.foreign,
		DecisionTokens: e.decided, ForeignTokens: e.foreign,
	}
}
