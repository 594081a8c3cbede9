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
	refills    prometheus.Counter
	// byCorrectness counts groups degenerate though their rewards differ.
	byCorrectness prometheus.Counter
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
	m.refills = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "sluice_refilled_members_total", Help: "Members lost to infrastructure that were asked for once more.",
	})
	m.byCorrectness = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "sluice_groups_degenerate_by_correctness_total", Help: "Groups degenerate though their rewards differ, because all answers are equally right or wrong.",
	})
	for _, c := range []prometheus.Collector{m.closed, m.duplicates, m.late, m.refills, m.byCorrectness} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}
