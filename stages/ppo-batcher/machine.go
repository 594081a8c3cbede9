package main

import (
	"log/slog"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/internal/horizon"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/internal/status"
	"github.com/sluice-rl/sluice/stages/ppo-batcher/step"
)

const (
	topicGrouped = "grouped"
	topicBatches = "ppo-batches"
)

// machine holds the steps of one partition of runs. Its state is one small entry per
// step: members are not stored again, an open step's records are read again from
// grouped after a restart.
type machine struct {
	cfg       config
	log       *slog.Logger
	metrics   *metrics
	partition int32

	open map[step.ID]*openStep
	// done are the batched steps within the horizon, by which late records are known.
	done    map[step.ID]bool
	horizon *horizon.Horizon
	// forget are keys behind the horizon; they are deleted with the next effects.
	forget map[string]bool
	// versions is the trainer's policy version per run, as last broadcast.
	versions map[string]uint32
	// unanswered are batched steps that the trainer has not answered, and when they were
	// batched.
	unanswered map[step.ID]time.Time
	// progress is where people see how far the steps are.
	progress *progress
	board    *status.Board
	told     time.Time
}

type openStep struct {
	*step.Step
	// from is the offset of the step's first record.
	from int64
	// moved is when the last of its records was written.
	moved time.Time
}

func newMachine(partition int32, cfg config, log *slog.Logger, m *metrics, p *progress, board *status.Board) *machine {
	return &machine{
		cfg: cfg, log: log, metrics: m, progress: p, board: board, partition: partition, unanswered: map[step.ID]time.Time{},
		open: map[step.ID]*openStep{}, done: map[step.ID]bool{},
		horizon: horizon.New(cfg.stepsKept), forget: map[string]bool{}, versions: map[string]uint32{},
	}
}

// Restore implements kafka.Machine.
func (m *machine) Restore(key string, value []byte) error {
	if value == nil {
		id, err := parseKey(key)
		delete(m.open, id)
		delete(m.done, id)
		delete(m.forget, key)
		return err
	}
	id, e, err := decode(key, value)
	if err != nil {
		return err
	}
	m.drop(m.horizon.See(runOf(id), id.Step))
	if !e.done {
		m.open[id] = &openStep{Step: step.New(id), from: e.from}
		return nil
	}
	delete(m.open, id)
	m.done[id] = true
	if !e.batched.IsZero() {
		m.unanswered[id] = e.batched
	}
	if !m.horizon.Keep(runOf(id), id.Step, key) {
		m.drop([]string{key})
	}
	return nil
}

// drop notes keys to be deleted and lets go of their steps.
func (m *machine) drop(keys []string) {
	for _, key := range keys {
		m.forget[key] = true
		if id, err := parseKey(key); err == nil {
			delete(m.done, id)
			delete(m.unanswered, id)
		}
	}
}

// Refetch implements kafka.Machine.
func (m *machine) Refetch() map[string]int64 {
	if len(m.open) == 0 {
		return nil
	}
	from := int64(-1)
	for _, s := range m.open {
		if from < 0 || s.from < from {
			from = s.from
		}
	}
	return map[string]int64{topicGrouped: from}
}

// Replay implements kafka.Machine: it does with a record of an open step what Step did.
func (m *machine) Replay(msg kafka.Message) error {
	s := m.open[idOf(msg)]
	if s == nil {
		return nil
	}
	s.moved = msg.Time
	switch body := msg.Body.(type) {
	case *sluicev1.GroupMember:
		s.Take(body)
	case *sluicev1.GroupClosed:
		// One that was refused then is refused now, and was told of then.
		_, _ = s.Close(body)
	}
	return nil
}

// Step implements kafka.Machine.
func (m *machine) Step(msg kafka.Message, now time.Time) (kafka.Effects, error) {
	var e kafka.Effects
	id := idOf(msg)
	if m.done[id] || m.open[id] == nil && m.horizon.Past(runOf(id), id.Step) {
		m.metrics.late.Inc()
		m.log.Info("record of a closed step dropped", "step", id.String(), "offset", msg.Offset)
		return e, nil
	}
	s, unknown := m.open[id], false
	if s == nil {
		s, unknown = &openStep{Step: step.New(id), from: msg.Offset}, true
	}
	s.moved = msg.Time
	switch body := msg.Body.(type) {
	case *sluicev1.GroupMember:
		s.Take(body)
	case *sluicev1.GroupClosed:
		if _, err := s.Close(body); err != nil {
			m.refuse(&e, msg, body, err, now)
		}
	default:
		return e, nil
	}
	if unknown {
		m.open[id] = s
		m.drop(m.horizon.See(runOf(id), id.Step))
	}
	switch {
	case s.Complete():
		if err := m.close(&e, s, now); err != nil {
			return kafka.Effects{}, err
		}
	case unknown:
		e.State = append(e.State, kafka.StateChange{Key: id.String(), Value: entry{from: s.from}.encode()})
	}
	m.sweep(&e)
	return e, nil
}

// close writes a complete step's batch, announced first, and remembers it as done.
func (m *machine) close(e *kafka.Effects, s *openStep, now time.Time) error {
	id := s.ID()
	done := entry{done: true}
	if s.Training() {
		batch, micro, err := m.cfg.rules.Batch(s.Step, m.versions[id.RunID], now)
		if err != nil {
			return err
		}
		e.Outputs = append(e.Outputs, kafka.Output{Topic: topicBatches, Body: batch})
		for _, b := range micro {
			e.Outputs = append(e.Outputs, kafka.Output{Topic: topicBatches, Body: b})
		}
		m.metrics.batched(batch)
		m.report(batch)
		m.faults(e, s.Step, batch, now)
		done.batched = now
		m.unanswered[id] = now
	}
	delete(m.open, id)
	key := id.String()
	if !m.horizon.Keep(runOf(id), id.Step, key) {
		m.forget[key] = true
		return nil
	}
	m.done[id] = true
	e.State = append(e.State, kafka.StateChange{Key: key, Value: done.encode()})
	return nil
}

// report logs what a person would want to know of a step.
func (m *machine) report(b *sluicev1.StepBatch) {
	write := m.log.Info
	if b.GetMicroBatches() == 0 {
		write = m.log.Warn
	}
	write("step batched", "run", b.GetRunId(), "incarnation", b.GetIncarnation(), "step", b.GetStep(),
		"micro_batches", b.GetMicroBatches(), "data", b.GetData(), "n", b.GetN(), "groups_used", b.GetGroupsUsed(),
		"groups_degenerate", b.GetGroupsDegenerate(), "groups_dropped", b.GetGroupsDropped())
}

// sweep adds the deletion of what is behind the horizon.
func (m *machine) sweep(e *kafka.Effects) {
	for _, key := range slices.Sorted(maps.Keys(m.forget)) {
		e.State = append(e.State, kafka.StateChange{Key: key})
	}
	clear(m.forget)
}

// Broadcast implements kafka.Broadcasts: the latest policy update of a run says where
// its trainer is. A trainer that rolled back says so with its next update.
func (m *machine) Broadcast(msg kafka.Message, _ time.Time) (kafka.Effects, error) {
	if u, ok := msg.Body.(*sluicev1.PolicyUpdate); ok {
		m.versions[u.GetRunId()] = u.GetPolicyVersion()
		for id := range m.unanswered {
			answered := id.Incarnation < u.GetIncarnation() || id.Incarnation == u.GetIncarnation() && id.Step <= u.GetStep()
			if id.RunID == u.GetRunId() && answered {
				delete(m.unanswered, id)
			}
		}
	}
	return kafka.Effects{}, nil
}

// Tick implements kafka.Machine: steps have no deadline, their groups have. It tells how
// far they are.
func (m *machine) Tick(now time.Time) (kafka.Effects, error) {
	var e kafka.Effects
	m.sweep(&e)
	m.told = now
	m.progress.tell(m.partition, m.steps(), now)
	return e, nil
}

// Deadline implements kafka.Machine.
func (m *machine) Deadline() (time.Time, bool) { return m.told.Add(tellEvery), true }

// steps is how far the steps are that wait for something.
func (m *machine) steps() []*sluicev1.StepProgress {
	var all []*sluicev1.StepProgress
	for id, s := range m.open {
		all = append(all, &sluicev1.StepProgress{
			RunId: id.RunID, Incarnation: id.Incarnation, Step: id.Step, Groups: uint32(s.Groups()), GroupsClosed: uint32(s.Closed()),
			OpenSlots: s.OpenSlots(slotsTold), MovedAt: timestamppb.New(s.moved),
		})
	}
	for id, at := range m.unanswered {
		all = append(all, &sluicev1.StepProgress{
			RunId: id.RunID, Incarnation: id.Incarnation, Step: id.Step, Batched: true, MovedAt: timestamppb.New(at),
		})
	}
	return all
}

// idOf is the step that a record of grouped belongs to.
func idOf(msg kafka.Message) step.ID {
	switch body := msg.Body.(type) {
	case *sluicev1.GroupMember:
		return step.IDOf(identity.GroupOf(body.GetScored().GetTrajectory().GetPrompt().GetGroup()))
	case *sluicev1.GroupClosed:
		return step.IDOf(identity.GroupOf(body.GetGroup()))
	}
	return step.ID{}
}

func runOf(id step.ID) horizon.Run {
	return horizon.Run{ID: id.RunID, Incarnation: id.Incarnation}
}
