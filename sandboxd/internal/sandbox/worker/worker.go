// Package worker holds the Python program that runs as process 1 of a sandbox
// and becomes the caller's program, and the few bytes it exchanges with the
// daemon before that.
//
// The protocol ends before untrusted code begins: CHECKPOINT (only while an
// image is made), AWAKE and a nudge (only in a clone), READY with the number of the
// process that becomes the program, one frame with the program, RUN. Whatever a program
// writes after RUN is its output and nothing else, so there is no reply that it
// could forge.
//
// In a sandbox that is shared by the programs of one trajectory (Share) it begins
// again after each of them: the daemon sends a word that nobody could have guessed,
// and on both streams CLEAN and that word come back once nothing of the program
// lives any more; then READY again.
package worker

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"math"
	"syscall"
)

//go:embed worker.py
var source string

// Lines that the worker writes to stdout, each exactly once, in this order.
const (
	Checkpoint = "CHECKPOINT\n"
	Awake      = "AWAKE\n"
	Ready      = "READY " // then a number
	Run        = "RUN\n"
)

// WordBytes is how long the word is that asks for the next program's process.
const WordBytes = 32

// Clean is what answers that word.
func Clean(word string) string { return "CLEAN " + word + "\n" }

// Share says how the programs of one sandbox are kept apart.
type Share struct {
	// TmpBytes and ShmBytes bound each one's own /tmp and /dev/shm.
	TmpBytes, ShmBytes int64
	// User is the first one's user, each later one's is one more.
	User int
	// Filter is the seccomp program that each one gets.
	Filter []byte
}

// text is what the worker reads, a Python dictionary.
func (s *Share) text() string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf("{'tmp': %d, 'shm': %d, 'user': %d, 'filter': '%x'}", s.TmpBytes, s.ShmBytes, s.User, s.Filter)
}

// FlushSignal makes a worker write out what the program has printed. Of this signal
// programs make no use, and one that has become another by exec ignores it.
const FlushSignal = syscall.SIGURG

// What the daemon writes to a clone that is awake, one byte.
const (
	Rehearse byte = 0 // then be ready
	Go       byte = 1 // be ready at once
)

// Mode says what a worker waits for.
type Mode string

// The two modes.
const (
	// Boot: report READY at once.
	Boot Mode = "boot"
	// Clone: be checkpointed first; report READY in every restored clone.
	Clone Mode = "checkpoint"
)

// start runs the worker's source, its first argument, in a namespace of its own, with
// builtins of its own, and leaves __main__ as it was: the program's.
const start = `exec(compile(__import__("sys").argv.pop(1), "<worker>", "exec"), {"__name__": "sandboxd", "__builtins__": dict(vars(__import__("builtins")))})`

// Args is the command line of a worker. exercise is Python source that is run
// before the checkpoint, wake what is run in every clone before it is ready. share is
// nil where a sandbox runs one program.
func Args(python string, mode Mode, exercise, wake string, share *Share) []string {
	return []string{python, "-c", start, source, string(mode), exercise, wake, share.text()}
}

// Frame wraps a program for the worker's stdin.
func Frame(code string) ([]byte, error) {
	if len(code) > math.MaxUint32 {
		return nil, fmt.Errorf("program of %d bytes does not fit a frame", len(code))
	}
	frame := make([]byte, 4, 4+len(code))
	binary.BigEndian.PutUint32(frame, uint32(len(code)))
	return append(frame, code...), nil
}
