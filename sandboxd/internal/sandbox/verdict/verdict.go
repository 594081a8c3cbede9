// Package verdict decides how a call ended from what the daemon itself saw.
//
// Reads: the status that gVisor returned, what the daemon did, what the kernel
// counted. It never reads anything that the program could forge, with one
// exception that can only hurt the program: the class of the exception, taken
// from the last traceback on stderr. It is pure.
package verdict

import (
	"fmt"
	"strings"

	"github.com/sluice-rl/sluice/sandboxd/api"
)

// Stop is why the daemon ended a sandbox, if it did.
type Stop string

// Reasons of the daemon's own.
const (
	NotStopped     Stop = ""
	StoppedTime    Stop = "time"
	StoppedOutput  Stop = "output"
	StoppedMemory  Stop = "memory"
	StoppedByOwner Stop = "caller"
)

// Evidence is all that the decision rests on.
type Evidence struct {
	// Started says that the worker acknowledged the program.
	Started bool
	// Stop is the daemon's own doing, whatever else happened afterwards.
	Stop Stop
	// Status is the program's exit status, or 128+N for signal N, as what lies
	// below the program reported it.
	Status int
	// Failure says that the sandbox failed under the program, and how; "" if it
	// did not.
	Failure string
	// OOMKills counts processes of the sandbox that the kernel killed.
	OOMKills int64
	// Stderr is the end of the program's stderr.
	Stderr []byte
}

// Verdict is the decision.
type Verdict struct {
	Outcome   api.Outcome
	ExitCode  int
	Exception string
	Cause     api.Cause
	Message   string
}

// faults are signals by which a program's own fault ends it.
var faults = map[int]string{4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 11: "SIGSEGV", 31: "SIGSYS"}

// maxSignal is Linux's highest signal number.
const maxSignal = 64

// Decide names the outcome.
func Decide(e Evidence) Verdict {
	v := Verdict{ExitCode: -1}
	switch {
	case e.OOMKills > 0:
		// First: a sandbox that thrashes at its memory limit may also run out
		// of time, and memory is then the cause.
		v.Outcome, v.Message = api.OutOfMemory, "the memory limit was reached"
		return v
	case e.Stop == StoppedMemory:
		v.Outcome, v.Message = api.OutOfMemory, "the memory limit was reached"
		return v
	case !e.Started && e.Failure != "":
		v.Outcome, v.Cause, v.Message = api.InfraError, api.CauseStart, "the sandbox failed before it took the program: "+e.Failure
		return v
	case e.Stop == StoppedTime && e.Failure != "":
		v.Outcome, v.Cause, v.Message = api.InfraError, api.CauseStuck, e.Failure
		return v
	case e.Stop == StoppedTime && !e.Started:
		v.Outcome, v.Cause, v.Message = api.InfraError, api.CauseStuck, "the sandbox did not take the program"
		return v
	case e.Stop == StoppedTime:
		v.Outcome, v.Message = api.Timeout, "the time limit was reached"
		return v
	case e.Stop == StoppedOutput:
		v.Outcome, v.Message = api.OutputLimit, "the output limit was reached"
		return v
	case e.Failure != "":
		v.Outcome, v.Cause, v.Message = api.InfraError, api.CauseDied, e.Failure
		return v
	case !e.Started:
		v.Outcome, v.Cause, v.Message = api.InfraError, api.CauseStart, fmt.Sprintf("the sandbox ended with status %d before it took the program", e.Status)
		return v
	}
	v.ExitCode = e.Status
	if e.Status == 0 {
		v.Outcome = api.OK
		return v
	}
	if signal := e.Status - 128; signal >= 1 && signal <= maxSignal && faults[signal] == "" {
		v.Outcome, v.Message = api.Killed, fmt.Sprintf("signal %d ended the program", signal)
		return v
	}
	v.Outcome = api.Error
	if name := faults[e.Status-128]; name != "" {
		v.Message = name + " ended the program"
	}
	if e.Status == 1 {
		v.Exception = ExceptionClass(e.Stderr)
	}
	return v
}

// Status writes a status in words: 128+N is signal N.
func Status(status int) string {
	if n := status - 128; n >= 1 && n <= maxSignal {
		return fmt.Sprintf("%d (signal %d)", status, n)
	}
	return fmt.Sprint(status)
}

// headers are the lines that open a traceback at its outermost level, with what
// stands before each of its lines.
var headers = []struct{ line, prefix string }{
	{"Traceback (most recent call last):", ""},
	{"  + Exception Group Traceback (most recent call last):", "  | "},
}

// ExceptionClass reads the class from the last traceback: the first line after its
// frames, which are indented. What follows is the message, which may look like
// anything.
func ExceptionClass(stderr []byte) string {
	lines := strings.Split(strings.TrimRight(string(stderr), "\n"), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		for _, h := range headers {
			if lines[i] != h.line {
				continue
			}
			if class := afterFrames(lines[i+1:], h.prefix); class != "" {
				return class
			}
		}
	}
	// An error of the parser has no traceback, only the place.
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.HasPrefix(lines[i], "  File \"") {
			return afterFrames(lines[i:], "")
		}
	}
	return ""
}

// afterFrames returns the class in the first line that is not indented.
func afterFrames(lines []string, prefix string) string {
	for _, line := range lines {
		line, ok := strings.CutPrefix(line, prefix)
		if !ok {
			return ""
		}
		if strings.HasPrefix(line, "  ") {
			continue
		}
		class, _, _ := strings.Cut(line, ":")
		if class = strings.TrimSpace(class); isClass(class) {
			return class
		}
		return ""
	}
	return ""
}

// isClass accepts a dotted Python identifier of reasonable length.
func isClass(s string) bool {
	if s == "" || len(s) > 200 {
		return false
	}
	for part := range strings.SplitSeq(s, ".") {
		if part == "" {
			return false
		}
		for i, r := range part {
			letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r > 127
			if !letter && (i == 0 || r < '0' || r > '9') {
				return false
			}
		}
	}
	return true
}
