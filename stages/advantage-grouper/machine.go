package main

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sluice-rl/sluice/schemas"
	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/advantage-grouper/group"
	"github.com/sluice-rl/sluice/stages/internal/horizon"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
)

const topicGrouped = "grouped"

// machine holds the groups of one partition of questions.
type machine struct {
	cfg     config
	log     *slog.Logger
	metrics *metrics
	tells   *standstill

	// groups are the open ones, and closed ones within the horizon, by which late
	// copies are known.
	groups  map[identity.Group]*group.Group
	horizon *horizon.Horizon
	// forget are keys behind the horizon; they are deleted with the next effects.
	forget map[string]bool

	// prompts are those of open groups, for refills.
	prompts map[identity.Group]*sluicev1.Prompt
	// requests are what operators asked to have closed, by key of group or step.
	requests map[string]string
	// timed is set by the first Tick, when the partition is caught up: before it no
	// deadline runs.
	timed bool
	clock clock
	// timers are in order, since all groups have the same time; those of groups that
	// have closed are skipped.
	timers []timer
}

// timer is when the clock will have counted enough for a group.
type timer struct {
	group identity.Group
	due   time.Duration
}

func newMachine(cfg config, log *slog.Logger, m *metrics, tells *standstill) *machine {
	return &machine{
		cfg: cfg, log: log, metrics: m, tells: tells,
		groups: map[identity.Group]*group.Group{}, horizon: horizon.New(cfg.stepsKept), forget: map[string]bool{},
		requests: map[string]string{}, prompts: map[identity.Group]*sluicev1.Prompt{}, clock: clock{outages: newOutages()},
	}
}

// Restore implements kafka.Machine.
func (m *machine) Restore(key string, value []byte) error {
	if strings.HasSuffix(key, promptSuffix) {
		return m.restorePrompt(key, value)
	}
	if value == nil {
		place, err := parseKey(key)
		delete(m.groups, place)
		delete(m.forget, key)
		return err
	}
	g, err := group.Load(value)
	if err != nil {
		return err
	}
	place := g.Place()
	m.groups[place] = g
	m.drop(m.horizon.See(runOf(place), place.Step))
	if g.Closed() && !m.horizon.Keep(runOf(place), place.Step, key) {
		m.drop([]string{key})
	}
	return nil
}

// drop notes keys to be deleted and lets go of their groups.
func (m *machine) drop(keys []string) {
	for _, key := range keys {
		m.forget[key] = true
		if place, err := parseKey(key); err == nil {
			delete(m.groups, place)
		}
	}
}

// Refetch implements kafka.Machine: the state says it all.
func (m *machine) Refetch() map[string]int64 { return nil }

// Replay implements kafka.Machine.
func (m *machine) Replay(kafka.Message) error { return nil }

// Step implements kafka.Machine.
func (m *machine) Step(msg kafka.Message, now time.Time) (kafka.Effects, error) {
	var e kafka.Effects
	var err error
	switch body := msg.Body.(type) {
	case *sluicev1.Prompt:
		err = m.prompt(&e, body, now)
	case *sluicev1.Scored:
		err = m.scored(&e, body, now)
	}
	if err != nil {
		return kafka.Effects{}, kafka.Reject(err, "refused")
	}
	m.sweep(&e)
	return e, nil
}

func (m *machine) prompt(e *kafka.Effects, p *sluicev1.Prompt, now time.Time) error {
	place := identity.GroupOf(p.GetGroup())
	g := m.groups[place]
	switch {
	case g != nil && g.Closed():
		return nil
	case g != nil:
		changed, err := g.Prompted(p)
		if err != nil {
			return err
		}
		m.remember(e, p)
		if m.refill(e, g, now) || changed {
			m.store(e, g)
		}
		return nil
	case m.horizon.Past(runOf(place), place.Step):
		m.log.Warn("prompt of a step that is long over", "group", place.String(), "steps_kept", m.cfg.stepsKept)
		m.metrics.late.Inc()
		return nil
	}
	g = group.Open(p, now)
	m.add(g, now)
	if why, asked := m.requested(place); asked {
		return m.closeByHand(e, g, why, now)
	}
	m.remember(e, p)
	m.store(e, g)
	return nil
}

// scored takes a trajectory into its group and passes it on.
func (m *machine) scored(e *kafka.Effects, s *sluicev1.Scored, now time.Time) error {
	place := identity.GroupOf(s.GetTrajectory().GetPrompt().GetGroup())
	g := m.groups[place]
	if g == nil && m.horizon.Past(runOf(place), place.Step) || g != nil && g.Closed() {
		m.late(s)
		return nil
	}
	unknown := g == nil
	if unknown {
		// The two topics are not ordered between them: a member that overtakes its
		// prompt opens the group as the prompt would have.
		g = group.Open(s.GetTrajectory().GetPrompt(), now)
	}
	counts, err := g.Join(s)
	if err != nil {
		return err
	}
	if unknown {
		m.add(g, now)
	}
	m.remember(e, s.GetTrajectory().GetPrompt())
	if !counts {
		m.metrics.duplicates.Inc()
		m.log.Info("second copy of a member dropped", "member", identity.TrajectoryID(s.GetTrajectory()))
		return nil
	}
	e.Outputs = append(e.Outputs, kafka.Output{
		Topic: topicGrouped, Body: &sluicev1.GroupMember{Scored: s, TakenAt: timestamppb.New(now)},
	})
	m.refill(e, g, now)
	if why, asked := m.requested(place); asked && !g.Complete() {
		return m.closeByHand(e, g, why, now)
	}
	if g.Complete() {
		return m.close(e, g, now)
	}
	m.store(e, g)
	return nil
}

// late counts a copy that came after its group was closed.
func (m *machine) late(s *sluicev1.Scored) {
	m.metrics.late.Inc()
	m.log.Info("member of a closed group dropped", "member", identity.TrajectoryID(s.GetTrajectory()))
}

// add takes in a group that has just been opened.
func (m *machine) add(g *group.Group, now time.Time) {
	place := g.Place()
	m.groups[place] = g
	m.drop(m.horizon.See(runOf(place), place.Step))
	if m.timed {
		m.clock.to(now)
		m.timers = append(m.timers, timer{place, m.clock.counted + m.cfg.deadline})
	}
}

func (m *machine) store(e *kafka.Effects, g *group.Group) {
	e.State = append(e.State, kafka.StateChange{Key: keyOf(g.Place()), Value: g.State()})
}

func (m *machine) close(e *kafka.Effects, g *group.Group, now time.Time) error {
	closed, err := g.Close(m.cfg.rule, now)
	if err != nil {
		return err
	}
	m.closed(e, g, closed)
	return nil
}

// closed writes a closing and remembers its group as closed.
func (m *machine) closed(e *kafka.Effects, g *group.Group, closed *sluicev1.GroupClosed) {
	place, key := g.Place(), keyOf(g.Place())
	if missing := g.Missing(); len(missing) > 0 {
		m.log.Warn("group closed with members missing", "group", place.String(), "closing", closed.GetClosing().String(),
			"reason", closed.GetReason(), "missing", missing, "graded", closed.GetGraded(), "group_size", closed.GetGroupSize())
	}
	m.metrics.closed.WithLabelValues(schemas.EnumText(closed.GetClosing()), closed.GetReason()).Inc()
	if closed.GetDetail() == group.DetailByCorrectness {
		m.metrics.byCorrectness.Inc()
		m.log.Info("group is degenerate though its rewards differ: all its answers are equally right or wrong (--degenerate-by)", "group", place.String())
	}
	e.Outputs = append(e.Outputs, kafka.Output{Topic: topicGrouped, Body: closed})
	m.forgetPrompt(e, place)
	if m.horizon.Keep(runOf(place), place.Step, key) {
		m.store(e, g)
	} else {
		m.drop([]string{key})
	}
}

// sweep adds the deletion of what is behind the horizon.
func (m *machine) sweep(e *kafka.Effects) {
	for _, key := range slices.Sorted(maps.Keys(m.forget)) {
		e.State = append(e.State, kafka.StateChange{Key: key})
	}
	clear(m.forget)
}

// Broadcast implements kafka.Broadcasts: what the stages before say of their backends,
// and what operators want closed.
func (m *machine) Broadcast(msg kafka.Message, now time.Time) (kafka.Effects, error) {
	switch body := msg.Body.(type) {
	case *sluicev1.StageStatus:
		m.clock.to(now)
		m.clock.outages.hear(body, now)
		m.tells.say(m.clock.to(now))
	case *sluicev1.CloseRequest:
		return m.request(body, now)
	}
	return kafka.Effects{}, nil
}

// Tick implements kafka.Machine. The first one starts the time of the groups that are
// open; every one closes those whose time is over.
func (m *machine) Tick(now time.Time) (kafka.Effects, error) {
	var e kafka.Effects
	m.tells.say(m.clock.to(now))
	if !m.timed {
		m.timed = true
		for _, place := range m.openGroups() {
			m.timers = append(m.timers, timer{place, m.clock.counted + m.cfg.deadline})
		}
	}
	for len(m.timers) > 0 && m.timers[0].due <= m.clock.counted {
		g := m.groups[m.timers[0].group]
		m.timers = m.timers[1:]
		if g == nil || g.Closed() {
			continue
		}
		if err := m.close(&e, g, now); err != nil {
			return kafka.Effects{}, err
		}
	}
	m.sweep(&e)
	return e, nil
}

// openGroups lists the open groups in an order that does not change.
func (m *machine) openGroups() []identity.Group {
	var open []identity.Group
	for place, g := range m.groups {
		if !g.Closed() {
			open = append(open, place)
		}
	}
	slices.SortFunc(open, compareGroups)
	return open
}

// Deadline implements kafka.Machine.
func (m *machine) Deadline() (time.Time, bool) {
	for len(m.timers) > 0 {
		if g := m.groups[m.timers[0].group]; g != nil && !g.Closed() {
			return m.clock.when(m.timers[0].due)
		}
		m.timers = m.timers[1:]
	}
	return time.Time{}, false
}
