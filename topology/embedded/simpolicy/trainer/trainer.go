package trainer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/policy"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/ppo"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/server"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/state"
)

// Topics, before the namespace prefix.
const (
	topicBatches = "ppo-batches"
	topicUpdates = "policy-updates"
	topicReports = "trainer-reports"
)

// Config is what a trainer is told.
type Config struct {
	// Connect are the options of every client: brokers, and how they are spoken to.
	Connect   []kgo.Opt
	Namespace string
	RunID     string
	// InferenceURL is said in updates.
	InferenceURL string
	Model        string
	// MaxMessageBytes bounds a produced batch, as topology.yaml says.
	MaxMessageBytes int32
	Freeze          bool
	PPO             ppo.Config
	// Reached is called after each numbered step of the package's comment, by the
	// names trained, saved, handed, reported, updated, marked. An error from it ends
	// Run at that point: tests crash the trainer with it. Nil is nothing.
	Reached func(step string) error
}

// Deps are what a trainer works with.
type Deps struct {
	Policy *policy.Policy
	Store  *state.Store
	// Hand gives a new policy to the inference server.
	Hand func(server.Snapshot)
	// Ready says whether the brokers can be reached; nil error is yes.
	Ready   func(error)
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Trainer trains one run. Make it with New, run it once.
type Trainer struct {
	cfg     Config
	policy  *policy.Policy
	store   *state.Store
	hand    func(server.Snapshot)
	ready   func(error)
	log     *slog.Logger
	metrics metrics
	reg     prometheus.Registerer

	state   state.State
	collect *collector
	client  *kgo.Client
}

// New builds a trainer that goes on from a loaded state.
func New(cfg Config, st state.State, d Deps) (*Trainer, error) {
	if cfg.Reached == nil {
		cfg.Reached = func(string) error { return nil }
	}
	t := &Trainer{
		cfg: cfg, policy: d.Policy, store: d.Store, hand: d.Hand, ready: d.Ready, log: d.Log, reg: d.Metrics,
		state: st, collect: newCollector(st.Positions),
	}
	if err := t.metrics.register(d.Metrics); err != nil {
		return nil, fmt.Errorf("trainer: %w", err)
	}
	return t, nil
}

// Run trains until the context ends, and then returns nil. It waits for brokers and
// topics that are absent. An error means that the state could not be saved.
func (t *Trainer) Run(ctx context.Context) error {
	if err := t.connect(ctx); err != nil {
		return stopped(ctx, err)
	}
	defer t.client.Close()
	if err := t.catchUp(ctx); err != nil {
		return stopped(ctx, err)
	}
	t.log.Info("training", "run", t.cfg.RunID, "policy_version", t.state.PolicyVersion, "answers", len(t.state.Answers), "positions", t.collect.positions(), "freeze", t.cfg.Freeze)
	for {
		fetches := t.client.PollFetches(ctx)
		if ctx.Err() != nil || fetches.IsClientClosed() {
			return nil
		}
		fetches.EachError(func(topic string, partition int32, err error) {
			t.log.Warn("cannot read, trying again", "topic", topic, "partition", partition, "error", err)
		})
		for it := fetches.RecordIter(); !it.Done(); {
			if err := t.record(ctx, it.Next()); err != nil {
				return stopped(ctx, err)
			}
		}
	}
}

// stopped tells an asked-for end from a failure.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// catchUp says again what the last process may not have said, and where the policy
// can be sampled now.
func (t *Trainer) catchUp(ctx context.Context) error {
	for i, a := range t.state.Answers {
		switch {
		case !a.Published:
			t.log.Info("publishing an answer that was saved and perhaps not published", "step", a.Step, "incarnation", a.Incarnation)
			if err := t.publish(ctx, a); err != nil {
				return err
			}
			if err := t.mark(i); err != nil {
				return err
			}
		case i == len(t.state.Answers)-1:
			if err := t.produce(ctx, topicUpdates, t.update(a)); err != nil {
				return err
			}
		}
	}
	return nil
}

// record takes one record of ppo-batches.
func (t *Trainer) record(ctx context.Context, r *kgo.Record) error {
	if string(r.Key) != t.cfg.RunID {
		t.collect.seen(r.Partition, r.Offset)
		return nil
	}
	m, err := codec.Decode(fromKafka(r))
	var complete *open
	known := true
	switch m := m.(type) {
	case *sluicev1.StepBatch:
		complete = t.collect.stepBatch(m, r.Partition, r.Offset)
	case *sluicev1.MicroBatch:
		complete, known = t.collect.microBatch(m)
	default:
		if err == nil {
			err = fmt.Errorf("%w: a %s does not belong here", codec.ErrInvalid, codec.TypeName(m))
		}
		t.metrics.unreadable.Inc()
		t.log.Error("record cannot be read", "topic", r.Topic, "partition", r.Partition, "offset", r.Offset, "error", err)
		complete = t.collect.unreadable(r.Partition)
	}
	t.collect.seen(r.Partition, r.Offset)
	if !known {
		t.metrics.orphans.Inc()
		t.log.Warn("micro-batch without its StepBatch", "partition", r.Partition, "offset", r.Offset)
	}
	if complete == nil {
		return nil
	}
	return t.complete(ctx, complete)
}

// complete answers a step that has all its micro-batches.
func (t *Trainer) complete(ctx context.Context, o *open) error {
	at := place{o.step.GetIncarnation(), o.step.GetStep()}
	if a, ok := t.state.Answer(at.incarnation, at.step); ok {
		t.metrics.again.Inc()
		t.log.Info("StepBatch was answered before: same answer", "step", at.step, "incarnation", at.incarnation, "policy_version", a.PolicyVersion)
		return t.publish(ctx, a)
	}
	if t.stale(at) {
		t.metrics.stale.Inc()
		t.log.Warn("StepBatch lies before all that is remembered: not trained on, not answered", "step", at.step, "incarnation", at.incarnation)
		return nil
	}
	after, err := t.train(time.Now, t.state, o)
	if err != nil {
		return err
	}
	if err := t.cfg.Reached("trained"); err != nil {
		return err
	}
	after.Positions = t.collect.positions()
	if err := t.store.Save(after); err != nil {
		return err
	}
	t.state = after
	if err := t.cfg.Reached("saved"); err != nil {
		return err
	}
	t.hand(server.Snapshot{Version: after.PolicyVersion, Parameters: after.Parameters})
	if err := t.cfg.Reached("handed"); err != nil {
		return err
	}
	last := len(after.Answers) - 1
	if err := t.publish(ctx, after.Answers[last]); err != nil {
		return err
	}
	if err := t.mark(last); err != nil {
		return err
	}
	t.metrics.answered(after.Answers[last].Trained)
	t.log.Info("step answered", "step", at.step, "incarnation", at.incarnation, "trained", after.Answers[last].Trained, "policy_version", after.PolicyVersion, "micro_batches", o.step.GetMicroBatches())
	return t.cfg.Reached("marked")
}

// stale: another incarnation has begun, or the step was answered so long ago that
// its answer is forgotten.
func (t *Trainer) stale(at place) bool {
	n := len(t.state.Answers)
	if n == 0 {
		return false
	}
	if at.incarnation < t.state.Answers[n-1].Incarnation {
		return true
	}
	oldest := t.state.Answers[0]
	return n == state.MaxAnswers && at.incarnation == oldest.Incarnation && at.step < oldest.Step
}

// mark saves that an answer is published.
func (t *Trainer) mark(i int) error {
	t.state.Answers[i].Published = true
	return t.store.Save(t.state)
}

// publish sends the report, then the update, which lets the run go on.
func (t *Trainer) publish(ctx context.Context, a state.Answer) error {
	report := &sluicev1.TrainerReport{}
	if err := proto.Unmarshal(a.Report, report); err != nil {
		return fmt.Errorf("saved report of step %d: %w", a.Step, err)
	}
	if err := t.produce(ctx, topicReports, report); err != nil {
		return err
	}
	if err := t.cfg.Reached("reported"); err != nil {
		return err
	}
	if err := t.produce(ctx, topicUpdates, t.update(a)); err != nil {
		return err
	}
	return t.cfg.Reached("updated")
}

func (t *Trainer) update(a state.Answer) *sluicev1.PolicyUpdate {
	return &sluicev1.PolicyUpdate{
		RunId: t.cfg.RunID, Incarnation: a.Incarnation, Step: a.Step, PolicyVersion: a.PolicyVersion,
		Trained: a.Trained, InferenceUrl: t.cfg.InferenceURL, Model: t.cfg.Model, PublishedAt: timestamppb.Now(),
	}
}
