package main

import (
	"github.com/prometheus/client_golang/prometheus"
)

// metrics are this stage's own figures. They count what the machines did, so a
// transaction that is aborted and done again counts twice; SQL has the exact numbers.
type metrics struct {
	closed     *prometheus.CounterVec
	duplicates prometheus.Counter
	late       prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		closed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_groups_closed_total", Help: "Groups closed, by closing and reason.",
		}, []string{"closing", "reason"}),
		duplicates: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sluice_duplicate_members_total", Help: "Members dropped because a copy had taken their place in an open group.",
		}),
		late: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sluice_late_members_total", Help: "Members and prompts dropped because their group was closed.",
		}),
	}
	for _, c := range []prometheus.Collector{m.closed, m.duplicates, m.late} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}
