package api

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Outcome says how a call ended. It is a closed list: a client may switch on it.
type Outcome string

const (
	// OK: the program ended by itself with exit status 0.
	OK Outcome = "ok"
	// Error: the program ended by itself with another status: an uncaught
	// exception, sys.exit(n), or a fault such as SIGSEGV.
	Error Outcome = "error"
	// Timeout: the program was still running at its wall or CPU limit.
	Timeout Outcome = "timeout"
	// OutOfMemory: the memory limit ended it. An uncaught MemoryError is an
	// Error: the program asked for more than can be, and was not ended for it.
	OutOfMemory Outcome = "out_of_memory"
	// OutputLimit: it wrote more than the output limit and was stopped.
	OutputLimit Outcome = "output_limit"
	// Killed: it died of a signal that the daemon did not send for a limit
	// (for instance it killed itself).
	Killed Outcome = "killed"
	// InfraError: the sandbox failed, not the program. The call says nothing
	// about the program and must never be shown to a policy.
	InfraError Outcome = "infra_error"
)

// Cause says what failed in an infra_error. It is a closed list.
type Cause string

const (
	// CauseStart: no sandbox took the program, which has not run at all.
	CauseStart Cause = "start"
	// CauseDied: the sandbox's kernel died under the program. Mostly that is
	// somebody's kill or a fault of the machine; if it happens to one program
	// again and again, the program makes it happen.
	CauseDied Cause = "kernel_died"
	// CauseStuck: the kernel was stopped or gave no sign of life.
	CauseStuck Cause = "kernel_stuck"
)

// Outcomes lists every outcome, in the order of the documentation.
func Outcomes() []Outcome {
	return []Outcome{OK, Error, Timeout, OutOfMemory, OutputLimit, Killed, InfraError}
}

// Request is one program to run.
type Request struct {
	// Code is the Python source. It must be valid UTF-8; it may be empty.
	Code string `json:"code"`
	// TimeoutMS is the wall time allowed in milliseconds, from the moment the
	// program is handed to a sandbox. 0 means the daemon's default; more than
	// the daemon's maximum is refused.
	TimeoutMS int64 `json:"timeout_ms,omitempty"`
	// Image asks for a warm image by name ("bare", "numpy", "sympy"); empty
	// lets the daemon choose by the program's imports.
	Image string `json:"image,omitempty"`
	// Cold asks for a freshly booted sandbox, whatever the pool holds.
	Cold bool `json:"cold,omitempty"`
	// Reservation is the id got from a reservation; empty means that the call
	// queues for a slot of its own.
	Reservation string `json:"reservation,omitempty"`
	// Trajectory names the trajectory that the program belongs to among its owner's, at
	// most 200 bytes. A daemon that isolates trajectories, not calls, may run its
	// programs in one sandbox, one after another; any other takes no notice.
	Trajectory string `json:"trajectory,omitempty"`
	// Label is copied to the daemon's log lines, at most 200 bytes; it has no
	// other meaning.
	Label string `json:"label,omitempty"`
	// Owner names those who share slots evenly with other owners (a run's
	// namespace, say), at most 200 bytes.
	Owner string `json:"owner,omitempty"`
}

// Timeout returns the wall limit asked for, 0 if none.
func (r Request) Timeout() time.Duration { return time.Duration(r.TimeoutMS) * time.Millisecond }

// MaxLabel is the longest label or owner accepted, in bytes.
const MaxLabel = 200

// Validate says what is wrong with a request, before any work is done.
func (r Request) Validate(maxCode int, maxTimeout time.Duration) error {
	switch {
	case !utf8.ValidString(r.Code):
		return fmt.Errorf("code is not valid UTF-8: send Python source encoded as UTF-8")
	case len(r.Code) > maxCode:
		return fmt.Errorf("code is %d bytes, the limit is %d: send a smaller program or raise --max-code", len(r.Code), maxCode)
	case r.TimeoutMS < 0:
		return fmt.Errorf("timeout_ms is %d: it must be 0 (default) or positive", r.TimeoutMS)
	case r.TimeoutMS > maxTimeout.Milliseconds():
		return fmt.Errorf("timeout_ms is %d, the limit is %d: ask for less or raise --max-timeout", r.TimeoutMS, maxTimeout.Milliseconds())
	case len(r.Trajectory) > MaxLabel:
		return fmt.Errorf("trajectory is %d bytes, the limit is %d", len(r.Trajectory), MaxLabel)
	case len(r.Label) > MaxLabel:
		return fmt.Errorf("label is %d bytes, the limit is %d", len(r.Label), MaxLabel)
	}
	return validOwner(r.Owner)
}

func validOwner(owner string) error {
	if len(owner) > MaxLabel {
		return fmt.Errorf("owner is %d bytes, the limit is %d", len(owner), MaxLabel)
	}
	return nil
}

// Stream is what was kept of stdout or stderr.
type Stream struct {
	// Kept holds the last bytes written, as they were.
	Kept []byte
	// Total counts all bytes read from the program.
	Total int64
	// Truncated says that bytes before Kept were dropped.
	Truncated bool
}

// Text returns the kept bytes as valid UTF-8, invalid bytes replaced by U+FFFD.
func (s Stream) Text() string { return strings.ToValidUTF8(string(s.Kept), "\uFFFD") }

// Result is the answer to one Request. Durations are milliseconds, sizes bytes.
type Result struct {
	Outcome Outcome
	// ExitCode is the program's status, 128+N if signal N ended it, and -1 if
	// it has none (the daemon stopped it, or it never ran).
	ExitCode int
	// Exception is the class of the uncaught exception as the last traceback
	// on stderr names it ("ZeroDivisionError"), empty if there is none. It is
	// read from text that the program can forge: fit for statistics only.
	Exception string
	Stdout    Stream
	Stderr    Stream
	// WallMS is the program's own run time; waiting and booting are apart.
	WallMS float64
	// CPUMS is the CPU time of the sandbox during the run, gVisor included.
	CPUMS float64
	// PeakMemory is the sandbox's highest memory use, the interpreter and
	// gVisor included; 0 where nothing can measure it.
	PeakMemory int64
	// QueueWaitMS is the time from the request's arrival until a slot was free.
	QueueWaitMS float64
	// StartMS is the time spent getting a sandbox after that: about 0 for a
	// warm one, the boot for a cold one.
	StartMS float64
	// Warm says that the sandbox came ready from the pool.
	Warm bool
	// Image names the image the sandbox was made from.
	Image string
	// SandboxID names the sandbox. No two calls share one, but for those of one
	// trajectory where the daemon isolates trajectories.
	SandboxID string
	// SandboxCall says that this was its first program, or which one; 0 if none ran.
	SandboxCall int
	// Protections is what held during this call.
	Protections Protections
	// Cause says what failed, for infra_error; else empty.
	Cause Cause
	// Message explains infra_error and the limits in words; else empty.
	Message string
}

// wireResult is the JSON shape of Result: one flat object.
type wireResult struct {
	Outcome         Outcome     `json:"outcome"`
	ExitCode        int         `json:"exit_code"`
	Exception       string      `json:"exception"`
	Stdout          string      `json:"stdout"`
	StdoutBase64    string      `json:"stdout_base64,omitempty"`
	StdoutBytes     int64       `json:"stdout_bytes"`
	StdoutTruncated bool        `json:"stdout_truncated"`
	Stderr          string      `json:"stderr"`
	StderrBase64    string      `json:"stderr_base64,omitempty"`
	StderrBytes     int64       `json:"stderr_bytes"`
	StderrTruncated bool        `json:"stderr_truncated"`
	WallMS          float64     `json:"wall_ms"`
	CPUMS           float64     `json:"cpu_ms"`
	PeakMemory      int64       `json:"peak_memory_bytes"`
	QueueWaitMS     float64     `json:"queue_wait_ms"`
	StartMS         float64     `json:"start_ms"`
	Warm            bool        `json:"warm"`
	Image           string      `json:"image"`
	SandboxID       string      `json:"sandbox_id"`
	SandboxCall     int         `json:"sandbox_call,omitempty"`
	Protections     Protections `json:"protections"`
	Cause           Cause       `json:"cause,omitempty"`
	Message         string      `json:"message,omitempty"`
}

// MarshalJSON writes the flat object that the package documentation describes.
func (r Result) MarshalJSON() ([]byte, error) {
	w := wireResult{
		Outcome: r.Outcome, ExitCode: r.ExitCode, Exception: r.Exception,
		StdoutBytes: r.Stdout.Total, StdoutTruncated: r.Stdout.Truncated,
		StderrBytes: r.Stderr.Total, StderrTruncated: r.Stderr.Truncated,
		WallMS: r.WallMS, CPUMS: r.CPUMS, PeakMemory: r.PeakMemory,
		QueueWaitMS: r.QueueWaitMS, StartMS: r.StartMS,
		Warm: r.Warm, Image: r.Image, SandboxID: r.SandboxID, SandboxCall: r.SandboxCall,
		Protections: r.Protections, Cause: r.Cause, Message: r.Message,
	}
	w.Stdout, w.StdoutBase64 = encodeStream(r.Stdout)
	w.Stderr, w.StderrBase64 = encodeStream(r.Stderr)
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON writes; the streams' bytes come back
// exactly as they were.
func (r *Result) UnmarshalJSON(data []byte) error {
	var w wireResult
	if err := json.Unmarshal(data, &w); err != nil {
		return fmt.Errorf("decode result: %w", err)
	}
	stdout, err := decodeStream(w.Stdout, w.StdoutBase64)
	if err != nil {
		return fmt.Errorf("decode result: stdout_base64: %w", err)
	}
	stderr, err := decodeStream(w.Stderr, w.StderrBase64)
	if err != nil {
		return fmt.Errorf("decode result: stderr_base64: %w", err)
	}
	*r = Result{
		Outcome: w.Outcome, ExitCode: w.ExitCode, Exception: w.Exception,
		Stdout: Stream{Kept: stdout, Total: w.StdoutBytes, Truncated: w.StdoutTruncated},
		Stderr: Stream{Kept: stderr, Total: w.StderrBytes, Truncated: w.StderrTruncated},
		WallMS: w.WallMS, CPUMS: w.CPUMS, PeakMemory: w.PeakMemory,
		QueueWaitMS: w.QueueWaitMS, StartMS: w.StartMS,
		Warm: w.Warm, Image: w.Image, SandboxID: w.SandboxID, SandboxCall: w.SandboxCall,
		Protections: w.Protections, Cause: w.Cause, Message: w.Message,
	}
	return nil
}

func encodeStream(s Stream) (text, exact string) {
	if utf8.Valid(s.Kept) {
		return string(s.Kept), ""
	}
	return s.Text(), base64.StdEncoding.EncodeToString(s.Kept)
}

func decodeStream(text, exact string) ([]byte, error) {
	if exact == "" {
		return []byte(text), nil
	}
	return base64.StdEncoding.DecodeString(exact)
}
