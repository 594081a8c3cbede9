package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-rl/sluice/schemas"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// metrics are this stage's own figures. They count what the machines did, so a
// transaction that is aborted and done again counts twice; SQL has the exact numbers.
type metrics struct {
	steps   prometheus.Counter
	micro   prometheus.Counter
	members *prometheus.CounterVec
	padded  prometheus.Counter
	loss    prometheus.Counter
	late    prometheus.Counter
	refused *prometheus.CounterVec
	idlest  prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := &metrics{
		steps: counter("sluice_steps_batched_total", "Steps closed with a StepBatch."),
		micro: counter("sluice_micro_batches_total", "Micro-batches written."),
		members: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_members_batched_total", Help: "Graded members of used groups, by what became of them.",
		}, []string{"fate"}),
		padded: counter("sluice_padded_tokens_total", "Tokens of micro-batches, padding included."),
		loss:   counter("sluice_loss_tokens_total", "Tokens trained on."),
		late:   counter("sluice_late_records_total", "Records dropped because their step was closed."),
	}
	m.refused = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sluice_closings_refused_total", Help: "Closings that could not be used; their groups count as dropped.",
	}, []string{"error_type"})
	m.idlest = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "sluice_step_idle_seconds", Help: "How long the step that waits longest, for a group or for the trainer, has not moved.",
	})
	for _, c := range []prometheus.Collector{m.refused, m.idlest, m.steps, m.micro, m.members, m.padded, m.loss, m.late} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) batched(b *sluicev1.StepBatch) {
	m.steps.Inc()
	m.micro.Add(float64(b.GetMicroBatches()))
	m.padded.Add(float64(b.GetPaddedTokens()))
	m.loss.Add(float64(b.GetLossTokens()))
	for _, member := range b.GetMembers() {
		fate := schemas.EnumText(member.GetFate())
		m.members.WithLabelValues(fate).Inc()
	}
}
