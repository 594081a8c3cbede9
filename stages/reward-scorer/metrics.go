package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// metrics are this stage's own figures. They count what the machines did, so a
// transaction that is aborted and done again counts twice; SQL has the exact numbers.
type metrics struct {
	scored     *prometheus.CounterVec
	duplicates prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		scored: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_trajectories_scored_total", Help: "Trajectories scored, by outcome: correct, incorrect, no_format, undecided, ungraded.",
		}, []string{"outcome"}),
		duplicates: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sluice_duplicate_trajectories_total", Help: "Trajectories dropped because the same copy had been scored.",
		}),
	}
	for _, c := range []prometheus.Collector{m.scored, m.duplicates} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) count(s *sluicev1.Scored) {
	outcome := "incorrect"
	switch {
	case !s.GetGraded():
		outcome = "ungraded"
	case s.GetCorrect():
		outcome = "correct"
	case s.GetVerdict().GetOutcome() == sluicev1.VerdictOutcome_VERDICT_OUTCOME_UNDECIDED:
		outcome = "undecided"
	case !s.GetValidFormat():
		outcome = "no_format"
	}
	m.scored.WithLabelValues(outcome).Inc()
}
