// Package metrics holds the daemon's Prometheus metrics, in a registry of its
// own.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Reasons of Replaced.
const (
	DiedWaiting = "died_waiting" // on its own, before anybody took it
	DiedTaken   = "died_taken"   // with a caller's program in hand, not yet begun
)

// Metrics is everything the daemon counts. Make it with New.
type Metrics struct {
	Registry *prometheus.Registry

	// Calls counts finished calls by outcome, image and start (warm, cold).
	Calls *prometheus.CounterVec
	// Refused counts calls that were sent away, by reason.
	Refused *prometheus.CounterVec
	// QueueWait, Start and Run are the parts of a call, in seconds.
	QueueWait, Start, Run prometheus.Histogram
	// Made observes how long making a sandbox took, by image.
	Made *prometheus.HistogramVec
	// MakeFailures counts sandboxes that did not start, by image.
	MakeFailures *prometheus.CounterVec
	// BuildFailures counts images that could not be built, by image.
	BuildFailures *prometheus.CounterVec
	// Replaced counts sandboxes that were ready and died before a program had
	// begun in them, by reason.
	Replaced *prometheus.CounterVec
	// Ready is the number of waiting sandboxes, by image.
	Ready *prometheus.GaugeVec
	// ColdFallbacks counts calls that had to boot because no warm sandbox came.
	ColdFallbacks prometheus.Counter
	// Swept counts what was removed of predecessors and of failed clean-ups.
	Swept prometheus.Counter
	// CleanupFailures counts sandboxes whose traces could not be removed.
	CleanupFailures prometheus.Counter
	// Tripped is 1 while the circuit breaker is open.
	Tripped prometheus.Gauge
}

// New registers all metrics, with those of the process and the Go runtime.
func New() *Metrics {
	short := []float64{.0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60}
	m := &Metrics{
		Registry: prometheus.NewRegistry(),
		Calls: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "sandboxd_calls_total",
			Help: "Finished calls by outcome, image and start."}, []string{"outcome", "image", "start"}),
		Refused: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "sandboxd_refused_total",
			Help: "Calls and reservations sent away, by reason."}, []string{"reason"}),
		QueueWait: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "sandboxd_queue_wait_seconds",
			Help: "Time from a call's arrival to its slot.", Buckets: short}),
		Start: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "sandboxd_start_seconds",
			Help: "Time from the slot to a sandbox ready for the call.", Buckets: short}),
		Run: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "sandboxd_run_seconds",
			Help: "Run time of programs.", Buckets: short}),
		Made: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "sandboxd_make_seconds",
			Help: "Time to make one sandbox (restore, or boot for image cold).", Buckets: short}, []string{"image"}),
		MakeFailures: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "sandboxd_make_failures_total",
			Help: "Sandboxes that did not start, by image."}, []string{"image"}),
		BuildFailures: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "sandboxd_build_failures_total",
			Help: "Attempts to build an image that failed; its programs start cold until one succeeds."}, []string{"image"}),
		Replaced: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "sandboxd_replaced_total",
			Help: "Ready sandboxes that died before a program had begun in them, by reason."}, []string{"reason"}),
		Ready: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "sandboxd_pool_ready",
			Help: "Warm sandboxes waiting, by image."}, []string{"image"}),
		ColdFallbacks: prometheus.NewCounter(prometheus.CounterOpts{Name: "sandboxd_cold_fallbacks_total",
			Help: "Calls that booted a sandbox because no warm one came in time."}),
		Swept: prometheus.NewCounter(prometheus.CounterOpts{Name: "sandboxd_swept_total",
			Help: "Processes, control groups, folders and sockets of a predecessor that were removed at start."}),
		CleanupFailures: prometheus.NewCounter(prometheus.CounterOpts{Name: "sandboxd_cleanup_failures_total",
			Help: "Sandboxes whose traces could not be removed."}),
		Tripped: prometheus.NewGauge(prometheus.GaugeOpts{Name: "sandboxd_tripped",
			Help: "1 while the circuit breaker refuses calls."}),
	}
	m.Registry.MustRegister(m.Calls, m.Refused, m.QueueWait, m.Start, m.Run, m.Made, m.MakeFailures, m.BuildFailures, m.Replaced, m.Ready,
		m.ColdFallbacks, m.Swept, m.CleanupFailures, m.Tripped,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Slots is a snapshot of admission.
type Slots struct {
	Running, Idle                           int
	CallsWaiting, ReservationsWaiting       int
	EvictedForCalls, EvictedForReservations int
}

// WatchSlots shows the state of admission whenever the metrics are read.
func (m *Metrics) WatchSlots(now func() Slots) {
	gauge := func(name, help, label, value string, get func(Slots) int) {
		m.Registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: name, Help: help, ConstLabels: prometheus.Labels{label: value},
		}, func() float64 { return float64(get(now())) }))
	}
	const slots, waiting = "Slots by what they do: running a call, or reserved and idle.", "Callers that wait for a slot: with a program in hand (call), or for a reservation."
	gauge("sandboxd_slots", slots, "state", "running", func(s Slots) int { return s.Running })
	gauge("sandboxd_slots", slots, "state", "idle", func(s Slots) int { return s.Idle })
	gauge("sandboxd_waiting", waiting, "kind", "call", func(s Slots) int { return s.CallsWaiting })
	gauge("sandboxd_waiting", waiting, "kind", "reservation", func(s Slots) int { return s.ReservationsWaiting })
	evicted := func(value string, get func(Slots) int) {
		m.Registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "sandboxd_reservations_evicted_total", Help: "Idle reservations whose slot was taken away for another caller, by its kind.",
			ConstLabels: prometheus.Labels{"for": value},
		}, func() float64 { return float64(get(now())) }))
	}
	evicted("call", func(s Slots) int { return s.EvictedForCalls })
	evicted("reservation", func(s Slots) int { return s.EvictedForReservations })
}
