package codec

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// Trajectories are most of what stages read and write. Their arrays are handled here
// (packed.go), the rest by the protobuf library, and what comes out is the same as from
// the library alone: a field that is added to Trajectory or Turn is added to appendTrajectory
// or appendTurn, in the order of the numbers, or a test says so.

// unmarshal is proto.Unmarshal of a record's value.
func unmarshal(name string, value []byte, m proto.Message) error {
	o := outlines.Get().(*outline)
	defer o.release()
	if !o.of(name, value) {
		// It holds no trajectory, or something is unusual in it.
		return proto.Unmarshal(value, m)
	}
	// What is decoded shares nothing with the outline.
	if err := proto.Unmarshal(o.value, m); err != nil {
		return err
	}
	o.fill(trajectoryOf(m))
	return nil
}

// appendMessage is a deterministic proto.MarshalAppend.
func appendMessage(b []byte, m proto.Message) ([]byte, error) {
	t := trajectoryOf(m)
	if t == nil {
		return appendSmall(b, m)
	}
	b = slices.Grow(b, room(t))
	if m == proto.Message(t) {
		return appendTrajectory(b, t)
	}
	return appendHolding(b, m, func(b []byte) ([]byte, error) { return appendTrajectory(b, t) })
}

// appendSmall is for what holds no trajectory.
func appendSmall(b []byte, m proto.Message) ([]byte, error) {
	b, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend(b, m)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return b, nil
}

func appendTrajectory(b []byte, t *sluicev1.Trajectory) ([]byte, error) {
	b, err := appendSmall(b, &sluicev1.Trajectory{Prompt: t.GetPrompt(), SampleIndex: t.GetSampleIndex(), Copy: t.GetCopy()})
	if err != nil {
		return nil, err
	}
	b = appendUint32s(b, trajectoryPromptTokens, t.GetPromptTokens())
	for _, turn := range t.GetTurns() {
		var at int
		b, at = openField(b, trajectoryTurns)
		if b, err = appendTurn(b, turn); err != nil {
			return nil, err
		}
		b = closeField(b, at)
	}
	rest := &sluicev1.Trajectory{
		EndReason: t.GetEndReason(), EndDetail: t.GetEndDetail(), FinalText: t.GetFinalText(), CodeCalls: t.GetCodeCalls(),
		Executions: t.GetExecutions(), EndedBy: t.GetEndedBy(), StartedAt: t.GetStartedAt(), EndedAt: t.GetEndedAt(),
	}
	rest.ProtoReflect().SetUnknown(t.ProtoReflect().GetUnknown())
	return appendSmall(b, rest)
}

func appendTurn(b []byte, t *sluicev1.Turn) ([]byte, error) {
	b = appendUint32s(b, turnTokens, t.GetTokens())
	b = appendFloats(b, turnLogprobs, t.GetLogprobs())
	b = appendUint32s(b, turnVersions, t.GetPolicyVersions())
	b, err := appendSmall(b, &sluicev1.Turn{
		Text: t.GetText(), Kind: t.GetKind(), InvalidReason: t.GetInvalidReason(), Truncated: t.GetTruncated(), Code: t.GetCode(),
		Execution: t.GetExecution(), Observation: t.GetObservation(),
	})
	if err != nil {
		return nil, err
	}
	b = appendUint32s(b, turnGlueTokens, t.GetGlueTokens())
	rest := &sluicev1.Turn{SampleStartedAt: t.GetSampleStartedAt(), SampleEndedAt: t.GetSampleEndedAt(), Aborts: t.GetAborts()}
	rest.ProtoReflect().SetUnknown(t.ProtoReflect().GetUnknown())
	return appendSmall(b, rest)
}

// room is about what a trajectory takes encoded, rather more than less.
func room(t *sluicev1.Trajectory) int {
	const number, scaffold = 3, 512
	n := scaffold + number*len(t.GetPromptTokens()) + len(t.GetPrompt().GetProblem().GetQuestion()) + len(t.GetFinalText())
	for _, turn := range t.GetTurns() {
		n += scaffold + (number+4+1)*len(turn.GetTokens()) + number*len(turn.GetGlueTokens()) + len(turn.GetText()) + len(turn.GetCode()) +
			len(turn.GetObservation()) + len(turn.GetExecution().GetStdout()) + len(turn.GetExecution().GetStderr())
	}
	return n
}
