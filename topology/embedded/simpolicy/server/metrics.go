package server

import (
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	samples  *prometheus.CounterVec
	tokens   prometheus.Counter
}

func (m *metrics) register(reg prometheus.Registerer, current func() Snapshot) error {
	m.requests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "simpolicy_requests_total", Help: "HTTP requests by route and status.",
	}, []string{"route", "status"})
	m.seconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "simpolicy_request_seconds", Help: "Time to answer a request, asked-for latency included.",
		Buckets: prometheus.ExponentialBuckets(0.0005, 4, 9),
	}, []string{"route"})
	m.samples = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "simpolicy_samples_total", Help: "Completions by finish reason.",
	}, []string{"finish_reason"})
	m.tokens = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "simpolicy_sampled_tokens_total", Help: "Tokens of all completions.",
	})
	version := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "simpolicy_policy_version", Help: "Version of the policy that is sampled now.",
	}, func() float64 { return float64(current().Version) })
	var errs []error
	for _, c := range []prometheus.Collector{m.requests, m.seconds, m.samples, m.tokens, version} {
		errs = append(errs, reg.Register(c))
	}
	return errors.Join(errs...)
}

func (m *metrics) request(route string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(route).Observe(took.Seconds())
}

func (m *metrics) sampled(finish string, tokens int) {
	m.samples.WithLabelValues(finish).Inc()
	m.tokens.Add(float64(tokens))
}
