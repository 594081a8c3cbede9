package kafka

import "time"

// Machine is the state of one partition number: all inputs of a keyed stage and its
// changelog share partition numbers, and the records of one number go to one
// machine, in order. A machine is pure (no clock, no I/O, no goroutines) and is
// called from one goroutine at a time.
//
// Its life: Restore for each entry of the changelog, Refetch, Replay for each record
// asked for, Broadcast (where it has it) for what is known so far, then Step per
// record, and once it has caught up with its inputs a first Tick, then Tick whenever
// Deadline has passed. When a transaction aborts the machine is thrown away and a
// new one is restored.
type Machine interface {
	// Restore applies one changelog entry; a nil value deletes. Entries of one key
	// come in the order they were written.
	Restore(key string, value []byte) error
	// Refetch names, per input topic, the offset from which records that were
	// already committed are needed in memory again. Nil: none.
	Refetch() map[string]int64
	// Replay is given those records up to the committed offset; it has no effects.
	// Records that cannot be decoded are left out.
	Replay(m Message) error
	// Step handles one record. If it returns an error made by Reject it must not
	// have changed the machine. Any other error throws the machine away; after a
	// third one for the same record that record goes to dead-letters.
	Step(m Message, now time.Time) (Effects, error)
	// Tick handles the passing of time. It is called once when the machine has been
	// restored and has caught up (start clocks there: they do not run while nobody
	// works), and again whenever Deadline has passed.
	Tick(now time.Time) (Effects, error)
	// Deadline is when Tick is wanted next; ok is false where it is not.
	Deadline() (t time.Time, ok bool)
}

// Broadcasts is a Machine that also wants the stage's broadcast topics. A restored
// machine is given everything broadcast so far again (per key at least the latest),
// so effects must be safe to repeat.
type Broadcasts interface {
	Broadcast(m Message, now time.Time) (Effects, error)
}

// Effects is what a machine wants done, in one transaction with the offset of the
// record that caused it.
type Effects struct {
	Outputs []Output
	// State is written to the changelog of the machine's partition.
	State []StateChange
}

// StateChange is one entry for the changelog; a nil Value deletes the key.
type StateChange struct {
	Key   string
	Value []byte
}
