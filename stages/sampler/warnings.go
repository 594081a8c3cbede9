package main

import (
	"log/slog"
	"sync"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// warnings says once what a run's settings cannot be used for.
type warnings struct {
	log  *slog.Logger
	mu   sync.Mutex
	said map[sampling]bool
	// short: it was said that the server's context is too short.
	short bool
}

// sampling is what decides whether behaviour logprobs are of the distribution that was
// sampled, as a comparable value.
type sampling struct {
	temperature, topP float64
	topK              uint32
}

func newWarnings(log *slog.Logger) *warnings {
	return &warnings{log: log, said: map[sampling]bool{}}
}

func (w *warnings) sampling(p *sluicev1.Prompt, logprobsMode string) {
	if p.GetMode() != sluicev1.Mode_MODE_TRAIN {
		return
	}
	s := sampling{p.GetSampling().GetTemperature(), p.GetSampling().GetTopP(), p.GetSampling().GetTopK()}
	tempered := s.temperature != 1 && logprobsMode == logprobsRaw
	truncated := s.topP < 1 || s.topK > 0
	if !tempered && !truncated {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.said[s] {
		return
	}
	w.said[s] = true
	if tempered {
		w.log.Warn("training on a temperature other than 1 with raw logprobs: they are of another distribution than was sampled, so every probability ratio will be off; start the server with processed logprobs and the sampler with --logprobs-mode processed",
			"temperature", s.temperature, "run", p.GetGroup().GetRunId())
	}
	if truncated {
		w.log.Warn("training on truncated sampling: a trainer computes probabilities over the whole vocabulary, so every probability ratio is off by the mass that was cut away; use top-p 1 and top-k 0",
			"top_p", s.topP, "top_k", s.topK, "run", p.GetGroup().GetRunId())
	}
}

func (w *warnings) context(p *sluicev1.Prompt, most int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.short {
		return
	}
	w.short = true
	w.log.Warn("the server's context is shorter than the budget of trajectories: they end at the context; start the server with a longer one or lower --max-trajectory-tokens of prompt-feeder",
		"max_model_len", most, "trajectory_tokens", p.GetBudgets().GetTrajectoryTokens())
}
