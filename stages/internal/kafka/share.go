package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"
)

// ShareConfig configures a worker stage that reads a share group.
type ShareConfig struct {
	Cluster ClusterConfig
	// Stage is its name in the topology, which says what it reads.
	Stage string
	// Slots is how many records are worked on at once. Each slot is a member of
	// the group with a client of its own. 0 means 1.
	Slots int
	// Reserve takes what a record will need (a sandbox) before the slot asks for
	// one; release gives it back. Nil: nothing is needed.
	Reserve func(ctx context.Context) (release func(), err error)
	// Lock is for how long the brokers hold a record for its slot between
	// renewals, of which there are at least three in that time. 0 means 30 s.
	Lock time.Duration
	// MaxDeliveries is how often a record may be delivered before it is given up
	// without work. 0 means 3.
	MaxDeliveries int32
	// Drain is how long work in flight may go on once the context ends. 0 means 35 s.
	Drain time.Duration
}

func (cfg *ShareConfig) defaults() {
	cfg.Slots = max(cfg.Slots, 1)
	if cfg.Lock == 0 {
		cfg.Lock = 30 * time.Second
	}
	if cfg.MaxDeliveries == 0 {
		cfg.MaxDeliveries = 3
	}
	if cfg.Drain == 0 {
		cfg.Drain = 35 * time.Second
	}
	if cfg.Reserve == nil {
		cfg.Reserve = func(context.Context) (func(), error) { return func() {}, nil }
	}
}

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
	if there, err := cfg.Cluster.awaitTopics(ctx, cfg.Stage, stage); !there {
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
	w.maxDeliveries = cfg.MaxDeliveries
	slots, soft := errgroup.WithContext(ctx)
	for i := range cfg.Slots {
		s := &slot{cfg: &cfg, worker: w, number: i, topics: cfg.Cluster.names(stage.Reads), group: group, handler: newHandler(i)}
		slots.Go(func() error { return s.run(soft, hard) })
	}
	return slots.Wait()
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
}

// run polls until soft ends; work begun may use hard.
func (s *slot) run(soft, hard context.Context) error {
	cl, st, err := s.cfg.Cluster.dial(s.cfg.Stage, slotRole(s.number),
		kgo.ShareGroup(s.group), kgo.ConsumeTopics(s.topics...),
		kgo.ShareMaxRecords(1), kgo.ShareMaxRecordsStrict(),
		kgo.ShareAckCallback(s.acknowledged),
	)
	if err != nil {
		return err
	}
	// Leaving sends the last acknowledgements.
	defer leave(cl, st, commitPatience)
	var wait backoff
	for soft.Err() == nil {
		release, err := s.cfg.Reserve(soft)
		if err != nil {
			if soft.Err() == nil {
				s.worker.log.Warn("cannot reserve what a record will need: trying again", "slot", s.number, "error", err)
			}
			wait.wait(soft, nil)
			continue
		}
		wait.reset()
		err = s.one(soft, hard, cl)
		release()
		if err != nil {
			return err
		}
	}
	return nil
}

// one waits for a record and works on it.
func (s *slot) one(soft, hard context.Context, cl *kgo.Client) error {
	for soft.Err() == nil {
		fetches := cl.PollRecords(soft, 1)
		if err := s.pollErrors(soft, fetches); err != nil {
			return nil
		}
		for _, r := range fetches.Records() {
			return s.hold(hard, cl, r)
		}
	}
	return nil
}

func (s *slot) pollErrors(ctx context.Context, fetches kgo.Fetches) error {
	err := fetches.Err()
	if err == nil || ctx.Err() != nil {
		return err
	}
	s.worker.log.Warn("poll failed", "slot", s.number, "error", err)
	(&backoff{next: time.Second}).wait(ctx, nil)
	return err
}

// hold works on a record under renewals of its lock. The acknowledgement goes to the
// brokers with the next poll, or within a second.
func (s *slot) hold(ctx context.Context, cl *kgo.Client, r *kgo.Record) error {
	stopRenewing := s.renew(ctx, cl, r)
	err := s.worker.do(ctx, r, s.handler)
	stopRenewing()
	switch {
	case err == nil:
		r.Ack(kgo.AckAccept)
		return nil
	case errors.Is(err, errAbandoned):
		// Only in stopping. Leaving the group gives the record back, which costs one
		// of its deliveries.
		r.Ack(kgo.AckRelease)
		return nil
	}
	r.Ack(kgo.AckRelease)
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
