package kafka

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// maxStepFailures is how often a machine may fail at one record before the record is
// given up.
const maxStepFailures = 3

// place is where a record lies.
type place struct {
	topic     string
	partition int32
	offset    int64
}

// failure is what is remembered of a record at which a machine failed.
type failure struct {
	times int
	// givenUp is set once the record is to be given up without another Step.
	givenUp error
}

// item is a polled record and its message.
type item struct {
	record *kgo.Record
	msg    Message
	err    error
	part   *partition
}

// handle takes a batch of polled records through one transaction.
func (s *session) handle(ctx context.Context, own assignment, polled kgo.Fetches) error {
	items, moved := s.items(polled)
	if err := s.newest(items); err != nil {
		// What was polled with it waits too: offsets are committed for all of it.
		if s.paused == nil {
			s.log.Error("the stage waits to be upgraded", "error", err)
		}
		s.paused = err
		s.state.setWork(err)
		s.wait.wait(ctx, own.ctx.Done())
		return s.abort(ctx)
	}
	if len(items) > 0 {
		s.paused = nil
		s.metrics.inFlight.Set(float64(len(items)))
		defer s.metrics.inFlight.Set(0)
		if !s.prepare(ctx, own, items) {
			return s.abort(ctx)
		}
		ok, err := s.transact(ctx, func(tx *transaction) error { return tx.steps(items) })
		if err != nil || !ok {
			return err
		}
		for _, it := range items {
			delete(s.failures, placeOf(it.record))
		}
	}
	for _, m := range moved {
		m.part.at[m.topic] = max(m.part.at[m.topic], m.at)
		m.part.end[m.topic] = max(m.part.end[m.topic], m.end)
	}
	return nil
}

// newest says whether a record among items is of a newer schema.
func (s *session) newest(items []item) error {
	for _, it := range items {
		if err := s.cfg.Cluster.newer(it.record, it.err); err != nil {
			return err
		}
	}
	return nil
}

func placeOf(r *kgo.Record) place { return place{r.Topic, r.Partition, r.Offset} }

// movement is how far a poll brought a partition.
type movement struct {
	part    *partition
	topic   string
	at, end int64
}

// items decodes what was polled. Control records only move positions.
func (s *session) items(polled kgo.Fetches) ([]item, []movement) {
	var items []item
	var moved []movement
	polled.EachPartition(func(fp kgo.FetchTopicPartition) {
		part := s.parts[fp.Partition]
		if part == nil || len(fp.Records) == 0 {
			return
		}
		for _, r := range fp.Records {
			if r.Attrs.IsControl() {
				continue
			}
			items = append(items, item{record: r, part: part})
		}
		last := fp.Records[len(fp.Records)-1].Offset + 1
		moved = append(moved, movement{part, s.cfg.Cluster.short(fp.Topic), last, max(last, fp.LastStableOffset)})
	})
	s.decode(items)
	return items, moved
}

// decode decodes items side by side: the partitions wait for it.
func (s *session) decode(items []item) {
	var wg sync.WaitGroup
	share := max(1, (len(items)+runtime.GOMAXPROCS(0)-1)/runtime.GOMAXPROCS(0))
	for some := range slices.Chunk(items, share) {
		wg.Go(func() {
			for i := range some {
				some[i].msg, some[i].err = Decode(s.cfg.Cluster, some[i].record)
			}
		})
	}
	wg.Wait()
}

// prepare calls the stage's Prepare until it succeeds; false if the assignment ended
// or the stage is to stop first.
func (s *session) prepare(ctx context.Context, own assignment, items []item) bool {
	if s.cfg.Prepare == nil {
		return true
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(own.ctx, cancel)()
	var ms []Message
	for _, it := range items {
		if it.err == nil {
			ms = append(ms, it.msg)
		}
	}
	var wait backoff
	for len(ms) > 0 {
		_, err := guard(s.log, func() (struct{}, error) { return struct{}{}, s.cfg.Prepare(ctx, ms) })
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return false
		}
		s.log.Warn("records cannot be prepared yet: trying again", "records", len(ms), "error", err)
		s.state.setWork(fmt.Errorf("%d records cannot be prepared yet: %w", len(ms), err))
		if !wait.wait(ctx, nil) {
			return false
		}
	}
	s.state.setWork(nil)
	return ctx.Err() == nil
}

// transaction collects what one transaction writes.
type transaction struct {
	s   *session
	now time.Time
	ctx context.Context

	// topics were written to.
	topics map[string]bool
	// touched are the partitions whose machines may have changed.
	touched map[*partition]bool

	mu sync.Mutex
	// failed is the first error of writing.
	failed error
	// counts are added to the metrics on commit.
	counts map[[2]string]int
}

// drop throws machines away, for new ones to be restored in their place.
func (s *session) drop(touched map[*partition]bool) {
	for p := range touched {
		delete(s.parts, p.number)
	}
}

// transact runs f in a transaction. ok is false where it was aborted; the machines that
// it touched are gone then. An error means that the client is beyond recovery.
func (s *session) transact(ctx context.Context, f func(*transaction) error) (ok bool, err error) {
	if err := s.transactions.verify(ctx); err != nil {
		return false, err
	}
	began := time.Now()
	tx := &transaction{s: s, now: began, ctx: context.WithoutCancel(ctx), topics: map[string]bool{}, touched: map[*partition]bool{}, counts: map[[2]string]int{}}
	if err := s.gts.Begin(); err != nil {
		if fenced(err, 0, s.cfg.TransactionTimeout) {
			err = fmt.Errorf("%w: %w", ErrFenced, err)
		}
		return false, fmt.Errorf("begin transaction: %w", err)
	}
	stepErr := f(tx)
	how := kgo.TryCommit
	if stepErr == nil {
		stepErr = tx.flush(s.cfg.TransactionTimeout)
	}
	if stepErr != nil {
		how = kgo.TryAbort
	}
	committed, err := s.end(ctx, how, began)
	if err == nil && committed {
		s.metrics.transactions.WithLabelValues("committed").Inc()
		took := time.Since(began).Seconds()
		for k, n := range tx.counts {
			s.metrics.records.WithLabelValues(k[0], k[1]).Add(float64(n))
			for range n {
				s.metrics.seconds.WithLabelValues(k[0]).Observe(took)
			}
		}
		s.wait.reset()
		return true, nil
	}
	s.drop(tx.touched)
	if err != nil {
		return false, err
	}
	s.metrics.transactions.WithLabelValues("aborted").Inc()
	if stepErr == nil {
		s.log.Info("transaction aborted: the group changed")
		return false, nil
	}
	if errors.Is(stepErr, ErrConfig) {
		return false, stepErr
	}
	s.log.Warn("transaction aborted: state will be restored and the records taken again", "error", stepErr)
	s.cfg.Cluster.Status.Failed("transaction_aborted", stepErr)
	if !errors.Is(stepErr, errGivenUp) {
		s.wait.wait(ctx, s.owner.current().ctx.Done())
	}
	return false, nil
}

// flush waits for all writes and returns the first error among them.
func (tx *transaction) flush(timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(tx.ctx, timeout)
	defer cancel()
	if err := FlushTransaction(ctx, tx.s.gts.Client(), tx.topics); err != nil {
		return err
	}
	tx.mu.Lock()
	defer tx.mu.Unlock()
	return tx.failed
}

func (tx *transaction) write(r *kgo.Record) {
	tx.topics[r.Topic] = true
	tx.s.gts.Produce(tx.ctx, r, func(_ *kgo.Record, err error) {
		if err != nil {
			tx.mu.Lock()
			defer tx.mu.Unlock()
			if tx.failed == nil {
				tx.failed = fmt.Errorf("write to %s: %w", r.Topic, err)
			}
		}
	})
}

// errGivenUp: the transaction was aborted because one of its records is to be given
// up, which the next one will do.
var errGivenUp = errors.New("a record is given up")

// steps takes records through their machines, in order.
func (tx *transaction) steps(items []item) error {
	for _, it := range items {
		if err := tx.step(it); err != nil {
			return err
		}
	}
	return nil
}

func (tx *transaction) step(it item) error {
	s := tx.s
	if it.err != nil {
		tx.giveUp(it, it.err)
		return nil
	}
	f := s.failures[placeOf(it.record)]
	if f != nil && f.givenUp != nil {
		tx.giveUp(it, f.givenUp)
		return nil
	}
	// dirty: the machine may have changed though its effects are not written.
	dirty := true
	tx.touched[it.part] = true
	effects, err := guard(s.log, func() (Effects, error) {
		e, err := it.part.machine.Step(it.msg, tx.now)
		dirty = err == nil
		return e, err
	})
	if err == nil {
		if err = tx.apply(it.part, effects); err == nil {
			tx.counts[[2]string{it.msg.Topic, outcomeDone}]++
			return nil
		}
	}
	if errors.Is(err, ErrConfig) {
		return err
	}
	if final(err) && !dirty {
		tx.giveUp(it, err)
		return nil
	}
	if f == nil {
		f = &failure{}
		s.failures[placeOf(it.record)] = f
	}
	f.times++
	where := fmt.Errorf("%s partition %d offset %d: %w", it.msg.Topic, it.msg.Partition, it.msg.Offset, err)
	switch {
	case final(err):
		f.givenUp = err
	case f.times >= maxStepFailures:
		f.givenUp = Reject(err, "step_failed")
	default:
		return where
	}
	return fmt.Errorf("%w: %w", errGivenUp, where)
}

func (tx *transaction) giveUp(it item, cause error) {
	for _, r := range tx.s.giveUp(it.record, it.msg.Body, cause) {
		tx.write(r)
	}
	tx.counts[[2]string{it.msg.Topic, outcomeDeadLetter}]++
}

// apply writes what a machine wants done; all of it is encoded before any is written.
func (tx *transaction) apply(p *partition, e Effects) error {
	s := tx.s
	records, err := s.cfg.Cluster.encodeAll(e.Outputs)
	if err != nil {
		return err
	}
	for _, c := range e.State {
		r := &kgo.Record{Topic: s.cfg.Cluster.name(s.changelog), Key: []byte(c.Key), Value: c.Value}
		toPartition(r, p.number)
		if size, limit := recordBytes(r), int(s.cfg.Cluster.Topology.MaxMessageBytes); size > limit {
			return fmt.Errorf("%w: state entry of %d bytes, the limit is %d", ErrTooLarge, size, limit)
		}
		records = append(records, r)
	}
	for _, r := range records {
		tx.write(r)
	}
	return nil
}

// tick tells the time to the machines that want it.
func (s *session) tick(ctx context.Context) error {
	now := time.Now()
	return s.each(ctx, func(p *partition) (Effects, error) {
		if d, ok := p.deadline(); !ok || d.After(now) {
			return Effects{}, nil
		}
		p.started, p.ticked = true, now
		return p.machine.Tick(now)
	})
}

// deliverBroadcasts tells machines what was broadcast since.
func (s *session) deliverBroadcasts(ctx context.Context) error {
	if s.follower == nil {
		return nil
	}
	return s.each(ctx, func(p *partition) (all Effects, err error) {
		var ms []Message
		ms, p.followedTo = s.follower.after(p.followedTo)
		b, ok := p.machine.(Broadcasts)
		if !ok {
			return Effects{}, nil
		}
		for _, m := range ms {
			e, err := b.Broadcast(m, time.Now())
			if err != nil {
				return Effects{}, err
			}
			all.Outputs = append(all.Outputs, e.Outputs...)
			all.State = append(all.State, e.State...)
		}
		return all, nil
	})
}

// each gets effects from all machines and commits them, if there are any.
func (s *session) each(ctx context.Context, f func(*partition) (Effects, error)) error {
	effects := map[*partition]Effects{}
	for _, p := range s.parts {
		e, err := guard(s.log, func() (Effects, error) { return f(p) })
		if err != nil {
			s.log.Error("a machine failed: its state will be restored", "partition", p.number, "error", err)
			s.cfg.Cluster.Status.Failed("machine_failed", err)
			s.wait.wait(ctx, s.owner.current().ctx.Done())
			touched := map[*partition]bool{p: true}
			for q := range effects {
				touched[q] = true
			}
			s.drop(touched)
			return s.abort(ctx)
		}
		if len(e.Outputs)+len(e.State) > 0 {
			effects[p] = e
		}
	}
	if len(effects) == 0 {
		return nil
	}
	_, err := s.transact(ctx, func(tx *transaction) error {
		for p := range effects {
			tx.touched[p] = true
		}
		for p, e := range effects {
			if err := tx.apply(p, e); err != nil {
				return fmt.Errorf("partition %d: %w", p.number, err)
			}
		}
		return nil
	})
	return err
}
