package kafka

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// intake holds what a classic worker has polled: records waiting by priority,
// records in flight, and per partition how far it may be committed.
type intake struct {
	cfg    ClassicConfig
	rank   map[string]int
	topics []string
	ctx    context.Context

	cl      *kgo.Client
	worker  *worker
	handler Handler
	state   *state

	mu      sync.Mutex
	waiting *priorityQueue[*job]
	busy    int
	paused  map[string]bool
	parts   map[topicPartition]*part
	fatal   error
	member  bool
	// stop ends polling.
	stop context.CancelFunc
	// changed is closed and renewed whenever a job ends.
	changed chan struct{}
	jobs    sync.WaitGroup
}

type topicPartition struct {
	topic     string
	partition int32
}

// part is one assigned partition, from its assignment to its revocation.
type part struct {
	tracker
	ctx    context.Context
	cancel context.CancelFunc
	busy   int
	gone   bool
}

// job is a record that was polled.
type job struct {
	record *kgo.Record
	part   *part
	mark   *tracked
}

func newIntake(ctx context.Context, cfg ClassicConfig, topics []string) *intake {
	in := &intake{
		cfg: cfg, ctx: ctx, topics: topics, rank: map[string]int{},
		waiting: newPriorityQueue[*job](len(topics)), paused: map[string]bool{},
		parts: map[topicPartition]*part{}, changed: make(chan struct{}),
	}
	for i, t := range topics {
		in.rank[t] = i
	}
	return in
}

// start gives the intake what could only be made with its own callbacks in hand.
func (in *intake) start(cl *kgo.Client, w *worker, h Handler, st *state) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.cl, in.worker, in.handler, in.state = cl, w, h, st
	if in.member {
		st.setWork(nil)
	}
}

// joined is called by the client, which may be before start.
func (in *intake) joined() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.member = true
	if in.state != nil {
		in.state.setWork(nil)
	}
}

// poll takes records until ctx ends or the stage cannot go on.
func (in *intake) poll(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in.mu.Lock()
	in.stop = cancel
	in.mu.Unlock()
	for ctx.Err() == nil {
		fetches := in.cl.PollRecords(ctx, in.cfg.Concurrency)
		if err := fetches.Err(); err != nil && ctx.Err() == nil {
			in.worker.log.Warn("poll failed", "error", err)
			in.cl.AllowRebalance()
			(&backoff{next: time.Second}).wait(ctx, nil)
			continue
		}
		in.cfg.polled(fetches.NumRecords())
		in.mu.Lock()
		fetches.EachRecord(in.take)
		in.fill()
		in.mu.Unlock()
		in.cl.AllowRebalance()
		in.awaitRoom(ctx)
	}
}

// take queues a record; mu is held.
func (in *intake) take(r *kgo.Record) {
	tp := topicPartition{r.Topic, r.Partition}
	p := in.parts[tp]
	if p == nil {
		p = &part{}
		p.ctx, p.cancel = context.WithCancel(in.ctx)
		in.parts[tp] = p
	}
	in.waiting.push(in.rank[r.Topic], &job{record: r, part: p, mark: p.add(r)})
}

// fill starts waiting jobs while there is room, and stops or resumes the fetching of
// topics whose rank is full or has drained; mu is held. The first topic is not stopped
// in the client but by not polling, because a topic that is resumed waits for the fetch
// that is under way.
func (in *intake) fill() {
	for in.busy < in.cfg.Concurrency {
		j, _, ok := in.waiting.pop()
		if !ok {
			break
		}
		if j.part.gone {
			continue
		}
		in.busy++
		j.part.busy++
		in.jobs.Go(func() { in.work(j) })
	}
	for i, topic := range in.topics {
		if i == 0 {
			continue
		}
		switch n := in.waiting.len(i); {
		case n >= 2*in.cfg.Concurrency && !in.paused[topic]:
			in.cl.PauseFetchTopics(topic)
			in.paused[topic] = true
		case n < in.cfg.Concurrency/2+1 && in.paused[topic]:
			in.cl.ResumeFetchTopics(topic)
			in.paused[topic] = false
		}
	}
}

// awaitRoom returns when the first topic's rank has room.
func (in *intake) awaitRoom(ctx context.Context) {
	for {
		in.mu.Lock()
		full, changed := in.waiting.len(0) >= 2*in.cfg.Concurrency, in.changed
		in.mu.Unlock()
		if !full {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func (in *intake) work(j *job) {
	err := in.worker.do(j.part.ctx, j.record, in.handler)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.busy--
	j.part.busy--
	switch {
	case err == nil && !j.part.gone:
		if commit, ok := j.part.finish(j.mark); ok {
			in.cl.MarkCommitOffsets(map[string]map[int32]kgo.EpochOffset{j.record.Topic: {j.record.Partition: commit}})
		}
	case err != nil && !errors.Is(err, errAbandoned):
		in.fatal = errors.Join(in.fatal, err)
		in.stop()
	}
	close(in.changed)
	in.changed = make(chan struct{})
	in.fill()
}

// revoke gives work in flight on the partitions its deadline, then commits what they
// finished. Records that wait are left to the next owner.
func (in *intake) revoke(cl *kgo.Client, m map[string][]int32) {
	parts := in.dropWaiting(m)
	if len(parts) == 0 {
		return
	}
	if !in.await(parts, revokeDeadline) {
		in.cancel(parts)
	}
	in.commit(cl, commitOnRevoke)
	in.forget(m)
}

// lose ends work on partitions that already belong to somebody else.
func (in *intake) lose(m map[string][]int32) {
	in.cancel(in.dropWaiting(m))
	in.forget(m)
}

func (in *intake) commit(cl *kgo.Client, patience time.Duration) {
	ctx, cancel := context.WithTimeout(in.ctx, patience)
	defer cancel()
	if err := cl.CommitMarkedOffsets(ctx); err != nil {
		in.cfg.Cluster.log().Warn("finished work could not be committed: it will be done again", "error", err)
	}
}

// dropWaiting takes the partitions' waiting records out of the queue.
func (in *intake) dropWaiting(m map[string][]int32) []*part {
	in.mu.Lock()
	defer in.mu.Unlock()
	var parts []*part
	drop := map[*part]bool{}
	for topic, ps := range m {
		for _, n := range ps {
			if p := in.parts[topicPartition{topic, n}]; p != nil {
				parts = append(parts, p)
				drop[p] = true
			}
		}
	}
	for i, q := range in.waiting.queues {
		var kept []*job
		for _, j := range q {
			if !drop[j.part] {
				kept = append(kept, j)
			}
		}
		in.waiting.queues[i] = kept
	}
	return parts
}

// await waits until no job of the partitions is in flight, for at most d.
func (in *intake) await(parts []*part, d time.Duration) bool {
	deadline := time.NewTimer(d)
	defer deadline.Stop()
	for {
		in.mu.Lock()
		busy, changed := 0, in.changed
		for _, p := range parts {
			busy += p.busy
		}
		in.mu.Unlock()
		if busy == 0 {
			return true
		}
		select {
		case <-changed:
		case <-deadline.C:
			return false
		}
	}
}

func (in *intake) cancel(parts []*part) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, p := range parts {
		p.gone = true
		p.cancel()
	}
}

func (in *intake) forget(m map[string][]int32) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for topic, ps := range m {
		for _, n := range ps {
			tp := topicPartition{topic, n}
			if p := in.parts[tp]; p != nil {
				p.gone = true
				p.cancel()
				delete(in.parts, tp)
			}
		}
	}
	if in.cl != nil {
		in.fill()
	}
}

// finish lets everything in flight end, commits, and returns what ended the stage if
// it was not asked to stop.
func (in *intake) finish() error {
	all := map[string][]int32{}
	in.mu.Lock()
	for tp := range in.parts {
		all[tp.topic] = append(all[tp.topic], tp.partition)
	}
	in.mu.Unlock()
	parts := in.dropWaiting(all)
	if !in.await(parts, in.cfg.Drain) {
		in.cancel(parts)
	}
	in.jobs.Wait()
	in.commit(in.cl, commitPatience)
	in.forget(all)
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.fatal
}
