package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-rl/sluice/schemas"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// metrics are the sampler's own; the runner counts records.
type metrics struct {
	tokens        prometheus.Counter
	sampleSeconds prometheus.Histogram
	ended         *prometheus.CounterVec
	attempts      *prometheus.CounterVec
	unusable      prometheus.Counter
	closed        prometheus.Counter
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		tokens: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sluice_sampled_tokens_total", Help: "Tokens that the policy sampled.",
		}),
		sampleSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "sluice_sample_seconds", Help: "Time of one request for completions, waiting for an absent server included.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 20),
		}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_trajectories_ended_total", Help: "Trajectories that the sampler ended, by reason.",
		}, []string{"reason"}),
	}
	m.attempts = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sluice_inference_attempts_total", Help: "Requests to inference servers, by what their answers meant: ending, absent, trouble, refusal, refusal_for_all.",
	}, []string{"class"})
	m.unusable = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "sluice_unusable_completions_total", Help: "Completions of a group that could not be used while others of it could.",
	})
	m.closed = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "sluice_closed_records_total", Help: "Records left because the step of their group was done.",
	})
	if r != nil {
		r.MustRegister(m.tokens, m.sampleSeconds, m.ended, m.attempts, m.unusable, m.closed)
	}
	return m
}

// reason is an end reason as metrics and SQL spell it.
func reason(t *sluicev1.Trajectory) string {
	return schemas.EnumText(t.GetEndReason())
}
