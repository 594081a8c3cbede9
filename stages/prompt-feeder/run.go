package main

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/topology/process"
)

// identity of the run that the flags and the file describe.
func (f *feeder) identity(sha256 string, rows int) *sluicev1.Run {
	p := f.prompt(&sluicev1.Problem{}, identity.Group{}, 1)
	return &sluicev1.Run{
		RunId: f.runID, DataSha256: sha256, Rows: uint64(rows), Mode: p.GetMode(), Seed: f.seed,
		GroupSize: f.groupSize, ProblemsPerStep: f.problems, Budgets: p.GetBudgets(), Sampling: p.GetSampling(),
		ToolEnabled: p.GetToolEnabled(), ToolProtocol: p.GetToolProtocol(), Reward: f.reward,
	}
}

// checkFile refuses what cannot be trained on, whatever the run was before.
func (c *config) checkFile(rows int) error {
	if c.mode == "train" && uint64(c.problems) > uint64(rows) {
		return process.Usage(fmt.Errorf("--problems-per-step %d: %s has %d problems, and none stands in a step twice", c.problems, c.data, rows))
	}
	return nil
}

// same refuses to go on with a run that was recorded otherwise: which problem stands in
// which slot, or how it is asked, would change in the middle of it.
func same(recorded, now *sluicev1.Run) error {
	diff := differences("", recorded.ProtoReflect(), now.ProtoReflect())
	if len(diff) == 0 {
		return nil
	}
	return process.Usage(fmt.Errorf("run %s was begun otherwise: give it what it had, or another --run-id\n  %s", now.GetRunId(), strings.Join(diff, "\n  ")))
}

// differences lists the fields in which two messages of one type differ, but for the time
// of the record.
func differences(prefix string, was, is protoreflect.Message) []string {
	var out []string
	fields := was.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		name := prefix + string(field.Name())
		a, b := was.Get(field), is.Get(field)
		switch {
		case name == "recorded_at" || a.Equal(b):
		case field.Message() != nil:
			out = append(out, differences(name+".", a.Message(), b.Message())...)
		default:
			out = append(out, fmt.Sprintf("%s: was %v, is %v", name, text(field, a), text(field, b)))
		}
	}
	return out
}

func text(field protoreflect.FieldDescriptor, v protoreflect.Value) any {
	if field.Enum() != nil {
		return field.Enum().Values().ByNumber(v.Enum()).Name()
	}
	if field.Kind() == protoreflect.StringKind {
		return fmt.Sprintf("%q", v.String())
	}
	return v.Interface()
}

// history is what the topic runs says of one run.
type history struct {
	runID string
	run   *sluicev1.Run
	fed   fed
	stop  *sluicev1.RunStop
}

// take takes in a record of the topic.
func (h *history) take(m proto.Message) {
	switch m := m.(type) {
	case *sluicev1.Run:
		if m.GetRunId() == h.runID && h.run == nil {
			h.run = m
		}
	case *sluicev1.RunFed:
		if at := (fed{m.GetIncarnation(), m.GetStep()}); m.GetRunId() == h.runID && !h.fed.has(at.incarnation, at.step) {
			h.fed = at
		}
	case *sluicev1.RunStop:
		if m.GetRunId() == h.runID {
			h.stop = m
		}
	}
}
