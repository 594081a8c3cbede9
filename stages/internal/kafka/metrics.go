package kafka

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// What became of a record, in sluice_records_total.
const (
	outcomeDone       = "done"
	outcomeDeadLetter = "dead_letter"
	// The record was let go unfinished: its partition moved, or the stage stopped.
	outcomeAbandoned = "abandoned"
	// The record was written anew, to be taken by anybody.
	outcomeRequeued = "requeued"
	// A broadcast record that could not be decoded: nobody owns it, so it is no
	// dead letter.
	outcomeSkipped = "skipped"
)

type metrics struct {
	records      *prometheus.CounterVec
	seconds      *prometheus.HistogramVec
	inFlight     prometheus.Gauge
	retries      *prometheus.CounterVec
	deadLetters  *prometheus.CounterVec
	transactions *prometheus.CounterVec
	hanging      *prometheus.CounterVec
	restore      prometheus.Histogram
	restored     prometheus.Counter
}

// newMetrics registers the metrics of a stage, or takes those that an earlier call
// registered.
func newMetrics(reg prometheus.Registerer, stage string) *metrics {
	labels := prometheus.Labels{"stage": stage}
	opts := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Name: "sluice_" + name, Help: help, ConstLabels: labels}
	}
	counter := func(name, help string, by ...string) *prometheus.CounterVec {
		return register(reg, prometheus.NewCounterVec(prometheus.CounterOpts(opts(name, help)), by))
	}
	buckets := prometheus.ExponentialBuckets(0.0005, 2, 20) // 0.5 ms to 4 min
	return &metrics{
		records: counter("records_total", "Records read, by what became of them.", "topic", "outcome"),
		seconds: register(reg, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "sluice_record_seconds", Help: "From taking a record up to having its outputs acknowledged, or the transaction around it committed.",
			ConstLabels: labels, Buckets: buckets,
		}, []string{"topic"})),
		inFlight:     register(reg, prometheus.NewGauge(prometheus.GaugeOpts(opts("in_flight", "Records being worked on.")))),
		retries:      counter("retries_total", "Attempts at a record that failed for want of infrastructure and were repeated.", "topic"),
		deadLetters:  counter("dead_letters_total", "Records given up, by class of error.", "error_type"),
		transactions: counter("transactions_total", "Transactions, by how they ended: committed or aborted.", "outcome"),
		hanging:      counter("hanging_transactions_ended_total", "Transactions ended whose marker the brokers had lost, by topic and decision.", "topic", "decision"),
		restore: register(reg, prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "sluice_restore_seconds", Help: "Time to restore the state of the partitions assigned.",
			ConstLabels: labels, Buckets: buckets,
		})),
		restored: register(reg, prometheus.NewCounter(prometheus.CounterOpts(opts("restored_entries_total", "Changelog entries applied in restoring state.")))),
	}
}

func register[C prometheus.Collector](reg prometheus.Registerer, c C) C {
	if reg == nil {
		return c
	}
	err := reg.Register(c)
	var already prometheus.AlreadyRegisteredError
	if errors.As(err, &already) {
		if existing, ok := already.ExistingCollector.(C); ok {
			return existing
		}
	}
	return c
}

// took counts a record that was worked on since start.
func (m *metrics) took(topic, outcome string, start time.Time) {
	m.records.WithLabelValues(topic, outcome).Inc()
	m.seconds.WithLabelValues(topic).Observe(time.Since(start).Seconds())
}
