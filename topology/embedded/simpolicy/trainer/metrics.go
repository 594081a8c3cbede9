package trainer

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	steps                             *prometheus.CounterVec
	unreadable, orphans, again, stale prometheus.Counter
}

func (m *metrics) register(reg prometheus.Registerer) error {
	m.steps = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "simpolicy_steps_answered_total", Help: "StepBatches answered for the first time, by whether parameters changed.",
	}, []string{"trained"})
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m.unreadable = counter("simpolicy_unreadable_records_total", "Records of ppo-batches that could not be read.")
	m.orphans = counter("simpolicy_orphan_micro_batches_total", "Micro-batches whose StepBatch was not seen.")
	m.again = counter("simpolicy_steps_answered_again_total", "StepBatches that had been answered before.")
	m.stale = counter("simpolicy_stale_steps_total", "StepBatches of an older incarnation or from before all that is remembered.")
	var errs []error
	for _, c := range []prometheus.Collector{m.steps, m.unreadable, m.orphans, m.again, m.stale} {
		errs = append(errs, reg.Register(c))
	}
	return errors.Join(errs...)
}

func (m *metrics) answered(trained bool) {
	if trained {
		m.steps.WithLabelValues("true").Inc()
		return
	}
	m.steps.WithLabelValues("false").Inc()
}
