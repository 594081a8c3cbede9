package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/internal/horizon"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/reward-scorer/reward"
	"github.com/sluice-rl/sluice/stages/reward-scorer/scoring"
)

const topicScored = "scored"

// machine remembers which trajectories of one partition of questions have been scored.
// Its state is one entry per trajectory: its id, and whether it was graded.
//
// One id can end twice: the process that worked on it died before that was acknowledged, and the
// repetition was given up. The end that can be graded counts, whichever comes first; a
// graded one after one that was not is passed on too, and the grouper lets it take the
// place.
type machine struct {
	// results finds what was prepared for a record.
	results func(kafka.Message) []reward.Result
	log     *slog.Logger
	metrics *metrics

	// taken says of the ids that have been seen whether they were graded.
	taken   map[string]bool
	horizon *horizon.Horizon
	// forget are keys behind the horizon; they are deleted with the next effects.
	forget map[string]bool
}

func newMachine(results func(kafka.Message) []reward.Result, stepsKept uint64, log *slog.Logger, m *metrics) *machine {
	return &machine{
		results: results, log: log, metrics: m,
		taken: map[string]bool{}, horizon: horizon.New(stepsKept), forget: map[string]bool{},
	}
}

// Restore implements kafka.Machine.
func (m *machine) Restore(key string, value []byte) error {
	if value == nil {
		delete(m.taken, key)
		delete(m.forget, key)
		return nil
	}
	place, err := parseKey(key)
	if err != nil {
		return err
	}
	m.take(place, key, !bytes.Equal(value, stateUngraded))
	return nil
}

// The values of the state.
var (
	stateGraded   = []byte{1}
	stateUngraded = []byte{0}
)

// parseKey reads a trajectory id back into its place.
func parseKey(key string) (identity.Place, error) {
	at, _, ok := strings.Cut(key, "~")
	place, err := identity.ParsePlace(at)
	if !ok || err != nil {
		return identity.Place{}, fmt.Errorf("unreadable state of reward-scorer: key %.150q, want run.incarnation/step/slot/sample~copy", key)
	}
	return place, nil
}

// take notes an id. One that lies behind the horizon is not remembered; take says
// whether it is.
func (m *machine) take(at identity.Place, id string, graded bool) bool {
	run := horizon.Run{ID: at.RunID, Incarnation: at.Incarnation}
	for _, key := range m.horizon.See(run, at.Step) {
		delete(m.taken, key)
		m.forget[key] = true
	}
	if !m.horizon.Keep(run, at.Step, id) {
		m.forget[id] = true
		return false
	}
	m.taken[id] = graded
	return true
}

// Refetch implements kafka.Machine: the state says it all.
func (m *machine) Refetch() map[string]int64 { return nil }

// Replay implements kafka.Machine.
func (m *machine) Replay(kafka.Message) error { return nil }

// Step implements kafka.Machine.
func (m *machine) Step(msg kafka.Message, now time.Time) (kafka.Effects, error) {
	var e kafka.Effects
	t, ok := msg.Body.(*sluicev1.Trajectory)
	if !ok {
		return e, nil
	}
	id := identity.TrajectoryID(t)
	if graded, seen := m.taken[id]; graded || seen && scoring.Ungraded(t) != "" {
		m.metrics.duplicates.Inc()
		m.log.Info("trajectory scored before: dropped", "trajectory", id)
		return e, nil
	}
	results := m.results(msg)
	if results == nil && scoring.Ungraded(t) == "" {
		return e, fmt.Errorf("trajectory %s has not been prepared", id)
	}
	s := scoring.Of(t, results)
	s.ScoredAt = timestamppb.New(now)
	m.metrics.count(s)
	e.Outputs = append(e.Outputs, kafka.Output{Topic: topicScored, Body: s})
	if m.take(identity.PlaceOf(t), id, s.GetGraded()) {
		value := stateUngraded
		if s.GetGraded() {
			value = stateGraded
		}
		e.State = append(e.State, kafka.StateChange{Key: id, Value: value})
	}
	m.sweep(&e)
	return e, nil
}

// sweep adds the deletion of what is behind the horizon.
func (m *machine) sweep(e *kafka.Effects) {
	for _, key := range slices.Sorted(maps.Keys(m.forget)) {
		e.State = append(e.State, kafka.StateChange{Key: key})
	}
	clear(m.forget)
}

// Tick implements kafka.Machine: nothing here waits for time.
func (m *machine) Tick(time.Time) (kafka.Effects, error) {
	var e kafka.Effects
	m.sweep(&e)
	return e, nil
}

// Deadline implements kafka.Machine.
func (m *machine) Deadline() (time.Time, bool) { return time.Time{}, false }
