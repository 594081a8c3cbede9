package main

import (
	"fmt"
	"time"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/advantage-grouper/group"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
)

// request closes by hand the open groups that an operator names, and remembers the request
// for those whose prompt has not been read yet. Said again it does nothing: they are
// closed.
func (m *machine) request(r *sluicev1.CloseRequest, now time.Time) (kafka.Effects, error) {
	m.requests[codec.Key(r)] = r.GetReason()
	var e kafka.Effects
	for _, place := range m.openGroups() {
		why, asked := m.requested(place)
		if !asked {
			continue
		}
		if err := m.closeByHand(&e, m.groups[place], why, now); err != nil {
			return kafka.Effects{}, err
		}
	}
	m.sweep(&e)
	return e, nil
}

// requested says whether somebody asked for a group to be closed, and why.
func (m *machine) requested(place identity.Group) (why string, asked bool) {
	if len(m.requests) == 0 {
		return "", false
	}
	step := fmt.Sprintf("%s.%d/%d", place.RunID, place.Incarnation, place.Step)
	for _, key := range []string{step, place.String()} {
		if why, asked = m.requests[key]; asked {
			return why, true
		}
	}
	return "", false
}

func (m *machine) closeByHand(e *kafka.Effects, g *group.Group, why string, now time.Time) error {
	closed, err := g.CloseByHand(m.cfg.rule, now, why)
	if err != nil {
		return err
	}
	m.closed(e, g, closed)
	return nil
}
