package trainer

import (
	"slices"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// place names a step.
type place struct {
	incarnation uint32
	step        uint64
}

// open is a StepBatch whose micro-batches are still coming.
type open struct {
	step *sluicev1.StepBatch
	// partition and offset are where its StepBatch stands: reading again starts there.
	partition int32
	offset    int64
	micro     map[uint32]*sluicev1.MicroBatch
	// broken counts records of its partition that could not be read meanwhile.
	broken uint32
}

func (o *open) complete() bool {
	return uint32(len(o.micro))+o.broken >= o.step.GetMicroBatches()
}

// batches are the micro-batches in order.
func (o *open) batches() []*sluicev1.MicroBatch {
	all := make([]*sluicev1.MicroBatch, 0, len(o.micro))
	for _, m := range o.micro {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b *sluicev1.MicroBatch) int { return int(a.GetIndex()) - int(b.GetIndex()) })
	return all
}

// collector gathers the micro-batches of StepBatches. It does no I/O.
type collector struct {
	open map[place]*open
	next map[int32]int64 // the offset after the last record seen, by partition
}

func newCollector(positions map[int32]int64) *collector {
	c := &collector{open: map[place]*open{}, next: map[int32]int64{}}
	for p, o := range positions {
		c.next[p] = o
	}
	return c
}

// seen marks a record as read.
func (c *collector) seen(partition int32, offset int64) { c.next[partition] = offset + 1 }

// stepBatch opens a step; it returns the step if that completes it.
func (c *collector) stepBatch(b *sluicev1.StepBatch, partition int32, offset int64) *open {
	at := place{b.GetIncarnation(), b.GetStep()}
	if o, twice := c.open[at]; twice {
		return c.done(at, o)
	}
	o := &open{step: b, partition: partition, offset: offset, micro: map[uint32]*sluicev1.MicroBatch{}}
	c.open[at] = o
	return c.done(at, o)
}

// microBatch adds one; known is false if its step is not open. A second one of the
// same index is dropped.
func (c *collector) microBatch(m *sluicev1.MicroBatch) (complete *open, known bool) {
	at := place{m.GetIncarnation(), m.GetStep()}
	o, ok := c.open[at]
	if !ok {
		return nil, false
	}
	if _, twice := o.micro[m.GetIndex()]; !twice {
		o.micro[m.GetIndex()] = m
	}
	return c.done(at, o), true
}

// unreadable notes a record that could not be read: it may have been a micro-batch
// of the oldest step that is open in its partition.
func (c *collector) unreadable(partition int32) *open {
	var first *open
	for _, o := range c.open {
		if o.partition == partition && (first == nil || o.offset < first.offset) {
			first = o
		}
	}
	if first == nil {
		return nil
	}
	first.broken++
	return c.done(place{first.step.GetIncarnation(), first.step.GetStep()}, first)
}

func (c *collector) done(at place, o *open) *open {
	if !o.complete() {
		return nil
	}
	delete(c.open, at)
	return o
}

// positions say where to read on so that no open step is lost.
func (c *collector) positions() map[int32]int64 {
	p := map[int32]int64{}
	for partition, next := range c.next {
		p[partition] = next
	}
	for _, o := range c.open {
		p[o.partition] = min(p[o.partition], o.offset)
	}
	return p
}
