package main

import (
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sluice-rl/sluice/sandboxd/api"
	"github.com/sluice-rl/sluice/sandboxd/client"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/sampler/observation"
)

// outcomes are sandboxd's, but for the failure of a sandbox itself: it is no outcome.
var outcomes = map[api.Outcome]sluicev1.ExecutionOutcome{
	api.OK:          sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_OK,
	api.Error:       sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_ERROR,
	api.Timeout:     sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_TIMEOUT,
	api.OutOfMemory: sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_OUT_OF_MEMORY,
	api.OutputLimit: sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_OUTPUT_LIMIT,
	api.Killed:      sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_KILLED,
}

// execution is a run of sandboxd's as the pipeline records it. queued is when the
// record was in hand, ended when the result was.
func execution(callID string, timeoutMS uint32, r client.Result, queued, ended time.Time, attempt int32) *sluicev1.Execution {
	e := &sluicev1.Execution{
		CallId: callID, Outcome: outcomes[r.Outcome], ExitCode: int32(r.ExitCode), Exception: class(r.Exception),
		StdoutBytes: uint64(r.Stdout.Total), StderrBytes: uint64(r.Stderr.Total), TimeoutMs: timeoutMS,
		WallMs: r.WallMS, CpuMs: r.CPUMS, PeakMemoryBytes: uint64(max(0, r.PeakMemory)),
		// Waiting for a slot and for a sandbox in it are one to whoever waits.
		QueueWaitMs: r.QueueWaitMS + r.StartMS,
		Warm:        r.Warm, Image: r.Image, SandboxId: r.SandboxID, Protections: protections(r.Protections),
		QueuedAt: timestamppb.New(queued), EndedAt: timestamppb.New(ended),
		StartedAt: timestamppb.New(ended.Add(-time.Duration(r.WallMS * float64(time.Millisecond)))),
		Delivery:  uint32(attempt),
		// Every attempt before this one ended without a result: it was cut off, or its
		// executor died.
		UnknownRuns: uint32(max(0, attempt-1)),
	}
	e.Stdout, e.StdoutTruncated = stream(r.Stdout)
	e.Stderr, e.StderrTruncated = stream(r.Stderr)
	return e
}

func stream(s api.Stream) (text string, truncated bool) {
	return observation.ClipStream(s.Kept, uint64(max(0, s.Total-int64(len(s.Kept)))))
}

// maxClass is the longest name of an exception that is kept: the program chooses it.
const maxClass = 100

// class is an exception's name, cut to letters that a name can have.
func class(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '.' || r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return -1
	}, name)
	return name[:min(len(name), maxClass)]
}

// protections lists what was in force: "isolation gvisor", "memory cgroup".
func protections(p api.Protections) []string {
	var out []string
	for _, f := range []struct{ what, by string }{
		{"isolation", p.Isolation}, {"platform", p.Platform}, {"memory", p.Memory}, {"cpu", p.CPU}, {"processes", p.Processes},
		{"disk", p.Disk}, {"network", p.Network}, {"output", p.Output}, {"wall_time", p.WallTime},
	} {
		if f.by != "" {
			out = append(out, f.what+" "+f.by)
		}
	}
	return out
}
