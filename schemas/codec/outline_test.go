package codec

import (
	"math"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// withoutArrays is a message without what an outline leaves out, and the count of its
// tokens.
func withoutArrays(m proto.Message) (proto.Message, int) {
	m = proto.Clone(m)
	t := trajectoryOf(m)
	tokens := len(t.GetPromptTokens())
	t.PromptTokens = nil
	for _, turn := range t.GetTurns() {
		tokens += len(turn.GetTokens()) + len(turn.GetGlueTokens())
		turn.Tokens, turn.Logprobs, turn.PolicyVersions, turn.GlueTokens = nil, nil, nil, nil
	}
	return m, tokens
}

// anyTrajectory draws a trajectory, by itself or in another message, which may be invalid.
func anyTrajectory(t *rapid.T) proto.Message {
	traj := &sluicev1.Trajectory{
		Prompt: &sluicev1.Prompt{
			Group: &sluicev1.GroupPlace{RunId: "run", Step: 2}, Problem: &sluicev1.Problem{QuestionId: "q", Answer: rapid.String().Draw(t, "answer")},
			GroupSize: 2, GroupsInStep: 1, Mode: sluicev1.Mode_MODE_TRAIN,
		},
		SampleIndex: 1, Copy: 9, EndReason: sluicev1.EndReason_END_REASON_ANSWER, FinalText: rapid.String().Draw(t, "text"),
		PromptTokens: rapid.SliceOf(anyToken).Draw(t, "prompt"), CodeCalls: 2,
	}
	for range rapid.IntRange(0, 3).Draw(t, "turns") {
		turn := &sluicev1.Turn{Text: rapid.String().Draw(t, "turn"), Truncated: rapid.Bool().Draw(t, "truncated"), GlueTokens: rapid.SliceOf(anyToken).Draw(t, "glue")}
		for range rapid.IntRange(0, 20).Draw(t, "tokens") {
			turn.Tokens = append(turn.Tokens, anyToken.Draw(t, "token"))
			turn.Logprobs = append(turn.Logprobs, rapid.SampledFrom([]float32{-1.5, 0, -math.MaxFloat32}).Draw(t, "logprob"))
			turn.PolicyVersions = append(turn.PolicyVersions, 1)
		}
		switch rapid.IntRange(0, 19).Draw(t, "wrong") {
		case 0:
			turn.PolicyVersions = append(turn.PolicyVersions, 1)
		case 1:
			turn.Logprobs = append(turn.Logprobs, float32(math.Inf(-1)))
		case 2:
			for i := range turn.Logprobs {
				turn.Logprobs[i] = float32(math.NaN())
			}
		}
		traj.Turns = append(traj.Turns, turn)
	}
	switch rapid.IntRange(0, 3).Draw(t, "in") {
	case 1:
		return &sluicev1.Scored{Trajectory: traj, UngradedReason: "why"}
	case 2:
		traj.EndReason = 0
		traj.Turns = append(traj.Turns, &sluicev1.Turn{Kind: sluicev1.TurnKind_TURN_KIND_TOOL, Code: rapid.String().Draw(t, "code")})
		return &sluicev1.CodeCall{Trajectory: traj, CallId: "c"}
	case 3:
		return &sluicev1.GroupMember{Scored: &sluicev1.Scored{Trajectory: traj, UngradedReason: "why"}, TakenAt: at}
	}
	return traj
}

// anyToken is of any length on the wire.
var anyToken = rapid.OneOf(rapid.Uint32Max(1<<7-1), rapid.Uint32Max(1<<14), rapid.Uint32Max(1<<21), rapid.Uint32())

// broken flips a bit of some records.
func broken(t *rapid.T, value []byte) {
	if rapid.IntRange(0, 4).Draw(t, "broken") == 0 && len(value) > 0 {
		value[rapid.IntRange(0, len(value)-1).Draw(t, "at")] ^= byte(1 << rapid.IntRange(0, 7).Draw(t, "bit"))
	}
}

// An outline is the decoded message without its arrays; what Decode refuses it refuses.
func TestOutlineIsDecodeWithoutArrays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rec, err := Rebuild(anyTrajectory(t), SchemaVersion)
		if err != nil {
			t.Fatal(err)
		}
		broken(t, rec.Value)
		sameAsDecode(t, rec)
	})
}

func sameAsDecode(t interface{ Fatalf(string, ...any) }, rec Record) {
	whole, werr := Decode(rec)
	got, tokens, err := DecodeOutline(rec)
	if (err == nil) != (werr == nil) {
		t.Fatalf("outline: %v; Decode: %v", err, werr)
	}
	if err != nil {
		return
	}
	want, n := withoutArrays(whole)
	got, _ = withoutArrays(got) // where the outline fell back to the whole
	if !proto.Equal(want, got) || tokens != n {
		t.Fatalf("%d tokens, want %d:\n%v\nwant\n%v", tokens, n, got, want)
	}
}

// A writer may leave numbers unpacked; they are counted all the same.
func TestOutlineOfUnpackedNumbers(t *testing.T) {
	m := &sluicev1.Trajectory{
		Prompt: &sluicev1.Prompt{
			Group: &sluicev1.GroupPlace{RunId: "run", Step: 2}, Problem: &sluicev1.Problem{QuestionId: "q"}, GroupSize: 2, GroupsInStep: 1, Mode: sluicev1.Mode_MODE_TRAIN,
		},
		Copy: 9, EndReason: sluicev1.EndReason_END_REASON_ANSWER,
	}
	rec, err := Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	rec.Value = protowire.AppendVarint(protowire.AppendTag(rec.Value, trajectoryPromptTokens, protowire.VarintType), 5)
	if _, tokens, err := DecodeOutline(rec); err != nil || tokens != 1 {
		t.Errorf("%d tokens, %v; want 1", tokens, err)
	}
	sameAsDecode(t, rec)
}

// Numbers of five bytes and more, and of none, at every place within eight bytes.
func TestPackedVarintsAreCountedOneByOne(t *testing.T) {
	slow := func(body []byte) (n int, ok bool) {
		for len(body) > 0 {
			_, size := protowire.ConsumeVarint(body)
			if size < 0 || size > 5 {
				return 0, false
			}
			n, body = n+1, body[size:]
		}
		return n, true
	}
	rapid.Check(t, func(t *rapid.T) {
		var body []byte
		for range rapid.IntRange(0, 40).Draw(t, "numbers") {
			for range rapid.SampledFrom([]int{0, 0, 1, 2, 3, 4, 5, 6}).Draw(t, "more") {
				body = append(body, 0x81)
			}
			body = append(body, 0x01)
		}
		if rapid.IntRange(0, 5).Draw(t, "cut") == 0 {
			body = append(body, 0x81)
		}
		want, wantOK := slow(body)
		if got, ok := packedVarints(protowire.BytesType, body); got.n != want || ok != wantOK {
			t.Fatalf("%x: %d, %v; want %d, %v", body, got.n, ok, want, wantOK)
		}
	})
}

func FuzzOutline(f *testing.F) {
	rec, err := Rebuild(&sluicev1.Trajectory{Prompt: &sluicev1.Prompt{}, PromptTokens: []uint32{1, 1 << 30}, Turns: []*sluicev1.Turn{{Tokens: []uint32{5}, Logprobs: []float32{-1}, PolicyVersions: []uint32{1}}}}, 1)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(rec.Value)
	f.Fuzz(func(t *testing.T, value []byte) {
		rec.Value = value
		sameAsDecode(t, rec)
	})
}
