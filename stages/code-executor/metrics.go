package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-rl/sluice/sandboxd/client"
)

// metrics are the executor's own; the runner counts records.
type metrics struct {
	runs    *prometheus.CounterVec
	seconds prometheus.Histogram
	start   prometheus.Histogram
	infra   prometheus.Counter
	givenUp prometheus.Counter
	cut     prometheus.Counter
	waiting *prometheus.GaugeVec
}

func newMetrics(r prometheus.Registerer) *metrics {
	buckets := prometheus.ExponentialBuckets(0.001, 2, 16)
	m := &metrics{
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_executions_total", Help: "Programs run, by outcome.",
		}, []string{"outcome"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "sluice_execution_seconds", Help: "Run time of programs, waiting and start-up left out.", Buckets: buckets,
		}),
		start: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "sluice_sandbox_wait_seconds", Help: "Time from a call to its program's start: waiting for a slot and starting a sandbox.", Buckets: buckets,
		}),
		infra: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sluice_sandbox_failures_total", Help: "Sandboxes that failed under a program; each was retried or ended a trajectory.",
		}),
		givenUp: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sluice_executions_given_up_total", Help: "Trajectories ended as infra_error because no sandbox could run their program.",
		}),
		cut: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sluice_executions_cut_total", Help: "Calls cut off after their program was sent to sandboxd, so that it may have run; each was repeated or ended a trajectory.",
		}),
		waiting: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sluice_slots_without_sandbox", Help: "Slots that want a sandbox and have none reserved: with a call in hand, or to ask for one.",
		}, []string{"for"}),
	}
	if r != nil {
		r.MustRegister(m.runs, m.seconds, m.start, m.infra, m.givenUp, m.cut, m.waiting)
	}
	return m
}

func (m *metrics) ran(r client.Result) {
	m.runs.WithLabelValues(string(r.Outcome)).Inc()
	m.seconds.Observe(r.WallMS / 1000)
	m.start.Observe((r.QueueWaitMS + r.StartMS) / 1000)
}

// without says how many slots want a sandbox: to ask for a call, and for one in hand.
func (m *metrics) without(asking, inHand int) {
	m.waiting.WithLabelValues("asking").Set(float64(asking))
	m.waiting.WithLabelValues("call").Set(float64(inHand))
}
