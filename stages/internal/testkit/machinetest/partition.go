package machinetest

import (
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
)

// Partition is one partition number: logs of the inputs, the changelog, what has been
// committed, and the machine that works on it.
type Partition struct {
	// Outputs are the committed outputs, in order.
	Outputs []kafka.Output
	// Rejected are the errors of records that were refused.
	Rejected []error
	// Now is what the machine is told the time is.
	Now time.Time

	make       func() kafka.Machine
	machine    kafka.Machine
	logs       map[string][]kafka.Message
	committed  map[string]int64
	changelog  []kafka.StateChange
	restarts   int
	broadcasts []kafka.Message
	caughtUp   bool
}

// New makes a partition whose machines come from make.
func New(now time.Time, make func() kafka.Machine) (*Partition, error) {
	p := &Partition{
		Now: now, make: make,
		logs: map[string][]kafka.Message{}, committed: map[string]int64{},
	}
	return p, p.Restart()
}

// Append writes a record to an input topic without handling it.
func (p *Partition) Append(topic string, body proto.Message) {
	p.logs[topic] = append(p.logs[topic], kafka.Message{
		Topic: topic, Offset: int64(len(p.logs[topic])), Key: codec.Key(body), Body: proto.Clone(body), Attempt: 1, Time: p.Now,
	})
}

// Lag is how many records of a topic have not been handled.
func (p *Partition) Lag(topic string) int { return len(p.logs[topic]) - int(p.committed[topic]) }

// Step handles the next record of a topic and commits. With crash the process dies
// before the commit: nothing of it remains and the machine is restored.
func (p *Partition) Step(topic string, crash bool) error {
	m := p.logs[topic][p.committed[topic]]
	m.Body = proto.Clone(m.Body)
	e, err := p.machine.Step(m, p.Now)
	if crash {
		return p.Restart()
	}
	if err != nil {
		p.Rejected = append(p.Rejected, err)
		e = kafka.Effects{}
	}
	p.committed[topic]++
	return p.commit(e)
}

// Settle lets the machine know that it has caught up, and ticks for as long as its
// deadline is not after Now.
func (p *Partition) Settle() error {
	if !p.caughtUp {
		p.caughtUp = true
		if err := p.tick(); err != nil {
			return err
		}
	}
	for range 1000 {
		at, ok := p.machine.Deadline()
		if !ok || at.After(p.Now) {
			return nil
		}
		if err := p.tick(); err != nil {
			return err
		}
	}
	return fmt.Errorf("the machine's deadline never moves beyond now")
}

func (p *Partition) tick() error {
	e, err := p.machine.Tick(p.Now)
	if err != nil {
		return err
	}
	return p.commit(e)
}

// Broadcast gives the machine a record of a broadcast topic, and again after restarts.
func (p *Partition) Broadcast(topic string, body proto.Message) error {
	m := kafka.Message{Topic: topic, Key: codec.Key(body), Body: body, Time: p.Now}
	p.broadcasts = append(p.broadcasts, m)
	return p.broadcast(m)
}

func (p *Partition) broadcast(m kafka.Message) error {
	b, ok := p.machine.(kafka.Broadcasts)
	if !ok {
		return fmt.Errorf("the machine takes no broadcasts")
	}
	e, err := b.Broadcast(m, p.Now)
	if err != nil {
		return err
	}
	return p.commit(e)
}

func (p *Partition) commit(e kafka.Effects) error {
	for _, o := range e.Outputs {
		// What cannot be written must not be taken for written.
		if _, err := codec.Encode(o.Body); err != nil {
			return err
		}
		p.Outputs = append(p.Outputs, kafka.Output{Topic: o.Topic, Body: proto.Clone(o.Body), RoundRobin: o.RoundRobin})
	}
	for _, c := range e.State {
		p.changelog = append(p.changelog, kafka.StateChange{Key: c.Key, Value: slices.Clone(c.Value)})
	}
	return nil
}

// compact leaves the last entry of each key, as the brokers do at a time of their own.
func (p *Partition) compact() {
	last := map[string]int{}
	for i, c := range p.changelog {
		last[c.Key] = i
	}
	var kept []kafka.StateChange
	for i, c := range p.changelog {
		if last[c.Key] == i && c.Value != nil {
			kept = append(kept, c)
		}
	}
	p.changelog = kept
}

// Restart throws the machine away and restores a new one from what is committed. Before
// every second restart the changelog is compacted.
func (p *Partition) Restart() error {
	p.machine, p.caughtUp = p.make(), false
	if p.restarts++; p.restarts%2 == 0 {
		p.compact()
	}
	for _, c := range p.changelog {
		if err := p.machine.Restore(c.Key, c.Value); err != nil {
			return err
		}
	}
	for topic, from := range p.machine.Refetch() {
		for _, m := range p.logs[topic][from:p.committed[topic]] {
			m.Body = proto.Clone(m.Body)
			if err := p.machine.Replay(m); err != nil {
				return err
			}
		}
	}
	for _, m := range p.broadcasts {
		if err := p.broadcast(m); err != nil {
			return err
		}
	}
	return nil
}

// State returns the number of changelog entries once it is compacted, and the bytes of
// their keys and values.
func (p *Partition) State() (entries, bytes int) {
	p.compact()
	for _, c := range p.changelog {
		bytes += len(c.Key) + len(c.Value)
	}
	return len(p.changelog), bytes
}

// Bodies returns the committed outputs of type M on a topic.
func Bodies[M proto.Message](p *Partition, topic string) []M {
	var out []M
	for _, o := range p.Outputs {
		if m, ok := o.Body.(M); ok && o.Topic == topic {
			out = append(out, m)
		}
	}
	return out
}
