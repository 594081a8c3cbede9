package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/topology"
)

// keyed is what outlives the sessions of a keyed stage.
type keyed struct {
	deadLetterWriter
	cfg        KeyedConfig
	stage      topology.Stage
	changelog  string
	newMachine func(int32) Machine
	follower   *follower
	// transactions looks after those that hang.
	transactions *transactions
	// failures remembers records at which a machine failed, over restores.
	failures map[place]*failure
}

// session is one transactional client and the machines of what it is assigned.
type session struct {
	*keyed
	gts   *kgo.GroupTransactSession
	state *state
	owner *ownership
	// parts holds the restored machines of the assignment numbered by have.
	parts map[int32]*partition
	have  int
	wait  backoff
	// paused: a record is of a newer schema, and the stage waits before it.
	paused error
	// heldSince is when state could not be restored because a transaction is open.
	heldSince time.Time
}

// session works with a client of its own until ctx ends or the client is beyond
// recovery.
func (k *keyed) session(ctx context.Context) error {
	if err := k.transactions.claim(ctx); err != nil {
		return err
	}
	ctx, startOver := context.WithCancelCause(ctx)
	defer startOver(nil)
	k.transactions.own(startOver)
	defer k.transactions.own(nil)
	opts, st, err := k.cfg.Cluster.options(k.cfg.Stage, "keyed")
	if err != nil {
		return err
	}
	// Before the client is made: it connects at once, and is not ready by that.
	st.setWork(errJoining)
	owner := newOwnership()
	gts, err := kgo.NewGroupTransactSession(append(opts,
		kgo.WithHooks(onDisconnect{&k.transactions.unverified}),
		kgo.ConsumerGroup(k.cfg.Cluster.name(k.stage.Group)),
		kgo.ConsumeTopics(k.cfg.Cluster.names(k.stage.Reads)...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		// Only the range balancer keeps the partitions of one number together.
		kgo.Balancers(kgo.RangeBalancer()),
		kgo.TransactionalID(k.cfg.Cluster.name(k.cfg.Stage)+"-"+k.cfg.Cluster.Instance),
		kgo.TransactionTimeout(k.cfg.TransactionTimeout),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, m map[string][]int32) { owner.assigned(m) }),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, m map[string][]int32) { owner.revoked(m) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, m map[string][]int32) { owner.revoked(m) }),
	)...)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	s := &session{keyed: k, gts: gts, state: st, owner: owner, parts: map[int32]*partition{}}
	defer leave(gts.Client(), st, leavePatience)
	for ctx.Err() == nil {
		if err := s.turn(ctx); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// turn is one round: restore what is new, take records, then broadcasts, then the time.
// An error means that the client is beyond recovery.
func (s *session) turn(ctx context.Context) error {
	own := s.owner.current()
	if own.number != s.have {
		s.parts, s.have = map[int32]*partition{}, own.number
	}
	if own.number == 0 {
		s.owner.wait(ctx)
		return nil
	}
	if err := s.restoreMissing(own); err != nil {
		s.held(err)
		s.rest(ctx, own, "state cannot be restored yet: trying again", err)
		return nil
	}
	s.heldSince = time.Time{}
	s.state.setWork(s.paused)

	polled := s.poll(ctx, own)
	if ctx.Err() != nil {
		return nil
	}
	if own.ctx.Err() != nil {
		// What was polled belongs to an assignment that is over.
		return s.abort(ctx)
	}
	if err := s.handle(ctx, own, polled); err != nil {
		return err
	}
	if err := s.deliverBroadcasts(ctx); err != nil {
		return err
	}
	return s.tick(ctx)
}

// held notes that an open transaction stands in the way, so that it is looked at.
func (s *session) held(err error) {
	if !errors.Is(err, kerr.UnstableOffsetCommit) {
		s.heldSince = time.Time{}
		return
	}
	if s.heldSince.IsZero() {
		s.heldSince = time.Now()
	}
	s.wait.next = min(s.wait.next, time.Second)
	s.transactions.unstable(s.heldSince)
}

// rest waits after a failure.
func (s *session) rest(ctx context.Context, own assignment, msg string, err error) {
	if own.ctx.Err() == nil && ctx.Err() == nil {
		s.log.Warn(msg, "error", err)
		s.state.setWork(err)
		s.wait.wait(ctx, own.ctx.Done())
	}
}

// poll takes up to a batch of records, or comes back without any when there are broadcasts,
// a deadline or another assignment.
func (s *session) poll(ctx context.Context, own assignment) kgo.Fetches {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(own.ctx, cancel)()
	if d, ok := s.nextDeadline(); ok {
		t := time.AfterFunc(time.Until(d), cancel)
		defer t.Stop()
	}
	if s.follower != nil && len(s.parts) > 0 {
		s.follower.whenAfter(s.followedTo(), cancel)
	}
	fetches := s.gts.PollRecords(ctx, s.cfg.BatchRecords)
	for _, e := range fetches.Errors() {
		if ctx.Err() == nil {
			s.log.Warn("poll failed", "topic", e.Topic, "partition", e.Partition, "error", e.Err)
			(&backoff{next: time.Second}).wait(ctx, nil)
		}
	}
	return fetches
}

// abort gives polled records back: the client goes on from the committed offsets, which
// is where the machines stand that have not seen them.
func (s *session) abort(ctx context.Context) error {
	_, err := s.end(ctx, kgo.TryAbort, time.Now())
	return err
}

// end ends a transaction, or resets the client where none is open.
func (s *session) end(ctx context.Context, how kgo.TransactionEndTry, began time.Time) (bool, error) {
	// Stopping must not tear a commit that is under way.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.TransactionTimeout)
	defer cancel()
	committed, err := s.gts.End(ctx, how)
	if err != nil {
		s.metrics.transactions.WithLabelValues("failed").Inc()
		if fenced(err, time.Since(began), s.cfg.TransactionTimeout) {
			return false, fmt.Errorf("%w: %s: %w", ErrFenced, s.cfg.Cluster.Instance, err)
		}
		return false, fmt.Errorf("end transaction: %w", err)
	}
	return committed, nil
}

// onDisconnect sets a flag whenever a connection ends.
type onDisconnect struct{ flag *atomic.Bool }

var _ kgo.HookBrokerDisconnect = onDisconnect{}

// OnBrokerDisconnect is called by the client.
func (d onDisconnect) OnBrokerDisconnect(kgo.BrokerMetadata, net.Conn) { d.flag.Store(true) }
