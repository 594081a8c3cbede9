package kafka

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// rangePart is one partition, from its assignment to its revocation.
type rangePart struct {
	*ranges
	tp      topicPartition
	topicID string

	ctx    context.Context
	cancel context.CancelFunc
	// stop closes when no range may be begun any more, done when the work has ended.
	stop, done chan struct{}

	mu sync.Mutex
	// waiting are polled records, in order; bytes is what they take.
	waiting []*kgo.Record
	bytes   int
	paused  bool
	// more holds a token after records came.
	more chan struct{}
}

func newRangePart(rs *ranges, tp topicPartition) *rangePart {
	p := &rangePart{ranges: rs, tp: tp, stop: make(chan struct{}), done: make(chan struct{}), more: make(chan struct{}, 1)}
	p.ctx, p.cancel = context.WithCancel(rs.ctx)
	return p
}

// add queues polled records, and stops fetching more than a few ranges ahead.
func (p *rangePart) add(records []*kgo.Record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range records {
		p.bytes += recordBytes(r)
	}
	p.waiting = append(p.waiting, records...)
	p.throttle()
	select {
	case p.more <- struct{}{}:
	default:
	}
}

// throttle stops or resumes fetching; mu is held.
func (p *rangePart) throttle() {
	full := p.bytes > 2*p.cfg.MaxBytes || len(p.waiting) > 4*p.cfg.MaxRecords
	if full == p.paused {
		return
	}
	p.paused = full
	which := map[string][]int32{p.tp.topic: {p.tp.partition}}
	if full {
		p.cl.PauseFetchPartitions(which)
	} else {
		p.cl.ResumeFetchPartitions(which)
	}
}

// leave lets the partition be fetched again by its next owner in this process.
func (p *rangePart) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting, p.bytes = nil, 0
	p.throttle()
}

func (p *rangePart) run() {
	defer close(p.done)
	defer p.cancel()
	defer p.leave()
	pending, ok := p.begin()
	if !ok {
		return
	}
	if pending != nil {
		p.worker.log.Info("finishing the range that was pending", "topic", p.tp.topic, "partition", p.tp.partition, "from", pending.from, "to", pending.to)
		if !p.handle(func() (Range, []*kgo.Record, bool) { return p.formAgain(*pending) }, true) {
			return
		}
	}
	for p.handle(p.form, false) {
	}
}

// begin learns the topic's id and the range that was left pending, nil if none.
func (p *rangePart) begin() (pending *pendingRange, ok bool) {
	ok = p.retry("read the committed offset", func() error {
		adm := kadm.NewClient(p.cl)
		topics, err := adm.ListTopics(p.ctx, p.tp.topic)
		if err == nil {
			err = topics.Error()
		}
		if err != nil {
			return err
		}
		id := topics[p.tp.topic].ID
		p.topicID = hex.EncodeToString(id[:])
		committed, err := adm.FetchOffsetsForTopics(kadm.RequireStable(p.ctx), p.group, p.tp.topic)
		if err != nil {
			return err
		}
		o, found := committed.Lookup(p.tp.topic, p.tp.partition)
		if !found || o.At < 0 {
			return nil
		}
		if o.Err != nil {
			return o.Err
		}
		pending, err = parsePending(o.At, o.Metadata)
		return err
	})
	return pending, ok
}

// pendingRange is what an offset's metadata say of the range that begins there.
type pendingRange struct {
	from, to int64
	records  int
}

const (
	pendingPrefix = "sluice-range/"
	pendingForm   = pendingPrefix + "1"
)

func (r pendingRange) metadata() string {
	return fmt.Sprintf("%s to=%d records=%d", pendingForm, r.to, r.records)
}

// parsePending reads metadata, nil where they name no range: other tools that set a
// group's offsets leave words of their own there.
func parsePending(from int64, metadata string) (*pendingRange, error) {
	if !strings.HasPrefix(metadata, pendingPrefix) {
		return nil, nil
	}
	r := &pendingRange{from: from}
	form, rest, _ := strings.Cut(metadata, " ")
	if form != pendingForm {
		return nil, fmt.Errorf("offset metadata %s are not of this version, which writes %s: upgrade this process, or let the one that wrote them finish", strconv.QuoteToASCII(metadata), pendingForm)
	}
	if _, err := fmt.Sscanf(rest, "to=%d records=%d", &r.to, &r.records); err != nil || r.to <= from {
		return nil, fmt.Errorf("offset metadata %s at offset %d: want %s with to above it", strconv.QuoteToASCII(metadata), from, pendingForm)
	}
	return r, nil
}

// form waits for records and cuts a range of them.
func (p *rangePart) form() (Range, []*kgo.Record, bool) {
	var due <-chan time.Time
	for {
		p.mu.Lock()
		n, bytes := len(p.waiting), p.bytes
		p.mu.Unlock()
		if n >= p.cfg.MaxRecords || bytes >= p.cfg.MaxBytes {
			return p.cut()
		}
		if n > 0 && due == nil {
			t := time.NewTimer(p.cfg.Interval)
			defer t.Stop()
			due = t.C
		}
		select {
		case <-p.stop:
			return Range{}, nil, false
		case <-due:
			return p.cut()
		case <-p.more:
		}
	}
}

func (p *rangePart) cut() (Range, []*kgo.Record, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, bytes := 0, 0
	for n < len(p.waiting) && n < p.cfg.MaxRecords {
		size := recordBytes(p.waiting[n])
		if n > 0 && bytes+size > p.cfg.MaxBytes {
			break
		}
		bytes += size
		n++
	}
	records := p.take(n)
	return p.rangeOf(records[0].Offset, records[n-1].Offset+1), records, true
}

// formAgain waits until all that is left of a range has been read.
func (p *rangePart) formAgain(r pendingRange) (Range, []*kgo.Record, bool) {
	for {
		p.mu.Lock()
		n, whole := 0, false
		for _, rec := range p.waiting {
			if rec.Offset < r.to {
				n++
			}
			whole = whole || rec.Offset >= r.to-1
		}
		if whole {
			records := p.take(n)
			p.mu.Unlock()
			if n != r.records {
				p.worker.log.Error("records of a pending range are gone from the topic: retention or compaction was faster", "topic", p.tp.topic, "partition", p.tp.partition, "from", r.from, "to", r.to, "records", n, "were", r.records)
			}
			return p.rangeOf(r.from, r.to), records, true
		}
		// It may be larger than what is fetched ahead by now.
		if p.paused {
			p.paused = false
			p.cl.ResumeFetchPartitions(map[string][]int32{p.tp.topic: {p.tp.partition}})
		}
		p.mu.Unlock()
		select {
		case <-p.stop:
			return Range{}, nil, false
		case <-p.more:
		}
	}
}

// take removes the first n records; mu is held.
func (p *rangePart) take(n int) []*kgo.Record {
	records := p.waiting[:n:n]
	p.waiting = p.waiting[n:]
	for _, r := range records {
		p.bytes -= recordBytes(r)
	}
	p.throttle()
	return records
}

func (p *rangePart) rangeOf(from, to int64) Range {
	return Range{Topic: p.cfg.Cluster.short(p.tp.topic), FullTopic: p.tp.topic, TopicID: p.topicID, Partition: p.tp.partition, From: from, To: to}
}

// handle takes one range through all steps. It returns false when the work on the
// partition ends.
func (p *rangePart) handle(form func() (Range, []*kgo.Record, bool), pending bool) bool {
	r, records, ok := form()
	if !ok {
		return false
	}
	start := time.Now()
	p.worker.metrics.inFlight.Add(float64(len(records)))
	defer p.worker.metrics.inFlight.Sub(float64(len(records)))
	p.cfg.At(RangeFormed, r)
	if !pending {
		mark := pendingRange{from: r.From, to: r.To, records: len(records)}
		if !p.retry("commit a pending range", func() error { return p.commit(r.From, mark.metadata()) }) {
			return false
		}
	}
	p.cfg.At(RangePending, r)
	var letters []*kgo.Record
	if !p.retry("read a range", func() (err error) { r.Messages, letters, err = p.decode(records); return err }) {
		return false
	}
	if p.worker.write(p.ctx, letters) != nil {
		return false
	}
	p.cfg.At(RangeLetters, r)
	if !p.retry("store a range", func() error {
		_, err := guard(p.worker.log, func() (struct{}, error) { return struct{}{}, p.sink.Write(p.ctx, r) })
		return err
	}) {
		return false
	}
	p.cfg.At(RangeWritten, r)
	if !p.retry("commit a range", func() error { return p.commit(r.To, "") }) {
		return false
	}
	p.cfg.At(RangeCommitted, r)
	for range r.Messages {
		p.worker.metrics.took(r.Topic, outcomeDone, start)
	}
	for range letters {
		p.worker.metrics.took(r.Topic, outcomeDeadLetter, start)
	}
	select {
	case <-p.stop:
		return false
	default:
		return true
	}
}

// decode reads the records, and makes dead letters of those that do not decode. Their
// trajectories are ended by the stages that they were written for. One of a newer schema
// is an error: the range waits for an upgrade.
func (p *rangePart) decode(records []*kgo.Record) (ms []Message, letters []*kgo.Record, err error) {
	deadLetters := p.cfg.Cluster.name(topicDeadLetters)
	for _, rec := range records {
		m, err := Decode(p.cfg.Cluster, rec)
		if err == nil {
			ms = append(ms, m)
			continue
		}
		if newer := p.cfg.Cluster.newer(rec, err); newer != nil {
			return nil, nil, newer
		}
		for _, out := range p.worker.giveUp(rec, nil, err) {
			if out.Topic == deadLetters {
				letters = append(letters, out)
			}
		}
	}
	return ms, letters, nil
}

// retry repeats f until it succeeds; false if the work on the partition ended first.
// f is tried at least once, and the range being handled may go on after stop.
func (p *rangePart) retry(what string, f func() error) bool {
	var wait backoff
	for attempt := 1; ; attempt++ {
		err := f()
		if err == nil {
			return true
		}
		if p.ctx.Err() != nil || errors.Is(err, kgo.ErrClientClosed) {
			return false
		}
		p.worker.metrics.retries.WithLabelValues(p.cfg.Cluster.short(p.tp.topic)).Inc()
		log := p.worker.log.Debug
		if attempt == 1 {
			log = p.worker.log.Warn
		}
		p.cfg.Cluster.Status.Failed("retried", fmt.Errorf("cannot %s: %w", what, err))
		log("cannot "+what+": trying again", "topic", p.tp.topic, "partition", p.tp.partition, "error", err)
		// A range that cannot be finished now is pending: its next owner does it.
		if !wait.wait(p.ctx, p.stop) {
			return false
		}
	}
}

// commit commits an offset with metadata, as a member of the group: a member that was
// put out is refused.
func (p *rangePart) commit(offset int64, metadata string) error {
	bounded, cancel := context.WithCancel(p.ctx)
	defer cancel()
	go func() {
		// What a stop leaves uncommitted is pending: its next owner does it. Without a
		// stop this must not be given up and tried again, because the brokers might take
		// the first attempt after a later commit.
		select {
		case <-p.stop:
		case <-bounded.Done():
			return
		}
		select {
		case <-time.After(commitPatience):
			cancel()
		case <-bounded.Done():
		}
	}()
	ctx := kgo.PreCommitFnContext(bounded, func(req *kmsg.OffsetCommitRequest) error {
		for i := range req.Topics {
			for j := range req.Topics[i].Partitions {
				// Always: the client would put its member id there.
				req.Topics[i].Partitions[j].Metadata = &metadata
			}
		}
		return nil
	})
	offsets := map[string]map[int32]kgo.EpochOffset{p.tp.topic: {p.tp.partition: {Epoch: -1, Offset: offset}}}
	var failed error
	p.cl.CommitOffsetsSync(ctx, offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
		failed = err
		if err != nil || resp == nil {
			return
		}
		for _, t := range resp.Topics {
			for _, part := range t.Partitions {
				failed = errors.Join(failed, kerr.ErrorForCode(part.ErrorCode))
			}
		}
	})
	if failed != nil {
		return fmt.Errorf("commit offset %d: %w", offset, failed)
	}
	return p.ctx.Err()
}
