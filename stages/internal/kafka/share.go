package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/sluice-rl/sluice/topology"
)

// ShareConfig configures a worker stage that reads a share group.
type ShareConfig struct {
	Cluster ClusterConfig
	// Stage is its name in the topology, which says what it reads.
	Stage string
	// Slots is how many records are worked on at once. Each slot is a member of
	// the group with a client of its own. 0 means 1.
	Slots int
	// Reserve takes what a record will need (a sandbox) before a slot asks for one. Nil:
	// nothing is needed.
	Reserve func(ctx context.Context, slot int) (Place, error)
	// Lock is for how long the brokers hold a record for its slot between
	// renewals, of which there are at least three in that time. 0 means 30 s.
	Lock time.Duration
	// MaxAttempts is how often work on a record may begin before it is given up without
	// more. 0 means 3.
	MaxAttempts int32
	// Drain is how long work in flight may go on once the context ends. 0 means 35 s.
	Drain time.Duration
}

func (cfg *ShareConfig) defaults() {
	cfg.Slots = max(cfg.Slots, 1)
	if cfg.Lock == 0 {
		cfg.Lock = 30 * time.Second
	}
	if cfg.MaxAttempts == 0 {
		cfg.MaxAttempts = 3
	}
	if cfg.Drain == 0 {
		cfg.Drain = 35 * time.Second
	}
	if cfg.Reserve == nil {
		cfg.Reserve = func(context.Context, int) (Place, error) { return noPlace{}, nil }
	}
}

// Place is what a record will need, kept for it while a slot asks for one.
type Place interface {
	// Lost is closed when the place is gone: the slot then stops asking. A slot that
	// has a record keeps it; its handler finds another place.
	Lost() <-chan struct{}
	// Release is called once the record is done, or the place of no use.
	Release()
}

// noPlace is the place of a record that needs none.
type noPlace struct{}

func (noPlace) Lost() <-chan struct{} { return nil }
func (noPlace) Release()              {}

// RunShare works until ctx ends. newHandler is called once per slot. It returns nil
// when all slots have ended, ErrUnsupported if the brokers have no share groups.
func RunShare(ctx context.Context, cfg ShareConfig, newHandler func(slot int) Handler) error {
	cfg.defaults()
	stage, err := cfg.Cluster.stage(cfg.Stage)
	if err != nil {
		return err
	}
	for _, t := range stage.Reads {
		if n := cfg.Cluster.Topology.Topics[t].Partitions; n > 1 && int(n) > cfg.Slots {
			cfg.Cluster.log().Warn("fewer slots than partitions: a slow record holds up the others of its partition",
				"topic", t, "partitions", n, "slots", cfg.Slots)
		}
	}
	roles := []string{"topics", shareProducer}
	for i := range cfg.Slots {
		roles = append(roles, slotRole(i))
	}
	cfg.Cluster.Begin(roles...)
	if there, err := cfg.Cluster.AwaitTopics(ctx, cfg.Stage, stage); !there {
		return err
	}
	producer, st, err := cfg.Cluster.dial(cfg.Stage, shareProducer)
	if err != nil {
		return err
	}
	defer producer.Close()
	group := cfg.Cluster.name(stage.Group)
	if err := prepareShareGroup(ctx, producer, st, group, cfg, cfg.Cluster.log()); err != nil {
		return err
	}

	// Slots and the work in them outlive ctx by Drain at most.
	hard, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(cfg.Drain, cancel) })()

	w := newWorker(cfg.Cluster, cfg.Stage, producer, ctx.Done())
	w.maxAttempts = cfg.MaxAttempts
	slots, soft := errgroup.WithContext(ctx)
	asking := make(chan struct{}, askers(cfg, stage))
	for i := range cfg.Slots {
		s := &slot{cfg: &cfg, worker: w, number: i, topics: cfg.Cluster.names(stage.Reads), group: group, handler: newHandler(i), asking: asking}
		slots.Go(func() error { return s.run(soft, hard) })
	}
	return slots.Wait()
}

// askers is how many slots of a process ask for a record at once: one, which then makes
// way for the next. So an idle process keeps one place and not as many as it has slots,
// and has one fetch pending that a record may be lost to if it is killed. Members are
// given partitions, though: of several every slot has to look after its own.
func askers(cfg ShareConfig, stage topology.Stage) int {
	for _, t := range stage.Reads {
		if cfg.Cluster.Topology.Topics[t].Partitions > 1 {
			return cfg.Slots
		}
	}
	return 1
}

// The roles of a share group's clients.
const shareProducer = "share producer"

func slotRole(number int) string { return fmt.Sprintf("share slot %d", number) }

// slot is one member of the share group, which holds one record at a time. A client
// cannot keep a record beyond its next poll, so concurrency means clients.
type slot struct {
	cfg     *ShareConfig
	worker  *worker
	number  int
	topics  []string
	group   string
	handler Handler
	// asking is held by who asks for a record.
	asking chan struct{}
	cl     *kgo.Client
	// late is until when a poll that was cut short may still bring a record.
	late time.Time
}

const (
	// fetchWait is how long the brokers keep a fetch that finds nothing.
	fetchWait = 500 * time.Millisecond
	// fetchEnd is when the client gives up a fetch whose answer does not come.
	fetchEnd = fetchWait + 6*time.Second
)

// run asks for records until soft ends; work begun may use hard.
func (s *slot) run(soft, hard context.Context) error {
	cl, st, err := s.cfg.Cluster.dial(s.cfg.Stage, slotRole(s.number),
		kgo.ShareGroup(s.group), kgo.ConsumeTopics(s.topics...),
		kgo.ShareMaxRecords(1), kgo.ShareMaxRecordsStrict(), kgo.FetchMaxWait(fetchWait),
		kgo.ShareAckCallback(s.acknowledged),
	)
	if err != nil {
		return err
	}
	s.cl = cl
	// Leaving sends the last acknowledgements.
	defer leave(cl, st, commitPatience)
	for soft.Err() == nil {
		r, place := s.next(soft)
		if r != nil {
			err = s.hold(hard, cl, r, s.worker.do)
		}
		if place != nil {
			place.Release()
		}
		if err != nil {
			return err
		}
	}
	return s.giveBack(hard)
}

// next waits for the slot's turn, reserves a place and asks for a record until there is
// one; nil once ctx ends.
func (s *slot) next(ctx context.Context) (*kgo.Record, Place) {
	select {
	case s.asking <- struct{}{}:
		defer func() { <-s.asking }()
	case <-ctx.Done():
		return nil, nil
	}
	var wait backoff
	for ctx.Err() == nil {
		place, err := s.reserve(ctx)
		if err != nil {
			if ctx.Err() == nil {
				s.worker.log.Warn("cannot reserve what a record will need: trying again", "slot", s.number, "error", err)
			}
			wait.wait(ctx, nil)
			continue
		}
		if r := s.poll(ctx, place.Lost()); r != nil {
			return r, place
		}
		place.Release()
	}
	return nil, nil
}

// reserve takes a place. It comes back without one if a record has come, late, from a
// poll that was cut short: that one is in hand already.
func (s *slot) reserve(ctx context.Context) (Place, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if time.Now().Before(s.late) {
		var watching sync.WaitGroup
		defer watching.Wait()
		defer cancel()
		watching.Go(func() {
			if s.arrived(ctx) {
				cancel()
			}
		})
	}
	place, err := s.cfg.Reserve(ctx, s.number)
	if err != nil && s.cl.BufferedFetchRecords() > 0 {
		return noPlace{}, nil
	}
	return place, err
}

// arrived waits for a late record; false if there is none.
func (s *slot) arrived(ctx context.Context) bool {
	tick := time.NewTicker(fetchWait / 10)
	defer tick.Stop()
	for time.Now().Before(s.late) {
		if s.cl.BufferedFetchRecords() > 0 {
			return true
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
	return false
}

// poll asks for a record until there is one, the place is lost or ctx ends.
func (s *slot) poll(ctx context.Context, lost <-chan struct{}) *kgo.Record {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer afterClosed(lost, cancel)()
	for ctx.Err() == nil {
		fetches := s.cl.PollRecords(ctx, 1)
		for _, r := range fetches.Records() {
			if !time.Now().Before(r.AcquisitionDeadline()) {
				// It waited in the client for too long, and is somebody else's by now.
				r.Ack(kgo.AckRelease)
				continue
			}
			return r
		}
		if err := fetches.Err(); err != nil && ctx.Err() == nil {
			s.worker.log.Warn("poll failed", "group", s.group, "slot", s.number, "error", err)
			(&backoff{next: time.Second}).wait(ctx, nil)
		}
	}
	s.late = time.Now().Add(fetchEnd)
	return nil
}

// afterClosed calls f when c is closed, until the function it returns is called.
func afterClosed(c <-chan struct{}, f func()) (stop func()) {
	stopped := make(chan struct{})
	var waiting sync.WaitGroup
	waiting.Go(func() {
		select {
		case <-c:
			f()
		case <-stopped:
		}
	})
	return func() { close(stopped); waiting.Wait() }
}

// giveBack returns a record that comes after the slot was told to stop. Leaving the group
// would do it too, and cost the record an attempt.
func (s *slot) giveBack(hard context.Context) error {
	ctx, cancel := context.WithTimeout(hard, fetchWait+fetchWait/2)
	defer cancel()
	if time.Now().After(s.late) || !s.arrived(ctx) {
		return nil
	}
	r := s.poll(ctx, nil)
	if r == nil {
		return nil
	}
	return s.hold(hard, s.cl, r, s.worker.giveBack)
}

// hold works on a record under renewals of its lock. The acknowledgement goes to the
// brokers with the next poll, or within a second.
func (s *slot) hold(ctx context.Context, cl *kgo.Client, r *kgo.Record, work func(context.Context, *kgo.Record, Handler) error) error {
	stopRenewing := s.renew(ctx, cl, r)
	err := work(ctx, r, s.handler)
	stopRenewing()
	if err == nil {
		r.Ack(kgo.AckAccept)
		return nil
	}
	r.Ack(kgo.AckRelease)
	if errors.Is(err, errAbandoned) {
		return nil // only in stopping, with work begun
	}
	return err
}

// renew keeps the record's lock until the function it returns is called.
func (s *slot) renew(ctx context.Context, cl *kgo.Client, r *kgo.Record) (stop func()) {
	// The brokers also give a record back when its connection has been idle.
	every := min(s.cfg.Lock/3, 10*time.Second)
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				r.Ack(kgo.AckRenew)
				_ = cl.FlushAcks(ctx) // what came of it, acknowledged is told
			}
		}
	})
	return func() { cancel(); done.Wait() }
}

// acknowledged is told what the brokers made of acknowledgements and renewals.
func (s *slot) acknowledged(_ *kgo.Client, results kgo.ShareAckResults) {
	if err := results.Error(); err != nil {
		s.worker.log.Warn("a record's lock was lost: it will be delivered again", "slot", s.number, "error", err)
	}
}
