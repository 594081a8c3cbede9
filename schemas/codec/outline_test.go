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
	t := trajectoryIn(m)
	tokens := len(t.GetPromptTokens())
	t.PromptTokens = nil
	for _, turn := range t.GetTurns() {
		tokens += len(turn.GetTokens()) + len(turn.GetGlueTokens())
		turn.Tokens, turn.Logprobs, turn.PolicyVersions, turn.GlueTokens = nil, nil, nil, nil
	}
	return m, tokens
}

func trajectoryIn(m proto.Message) *sluicev1.Trajectory {
	if m, ok := m.(*sluicev1.GroupMember); ok {
		return m.GetScored().GetTrajectory()
	}
	return trajectoryOf(m)
}

// An outline is the decoded message without its arrays; what Decode refuses it refuses.
func TestOutlineIsDecodeWithoutArrays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		traj := &sluicev1.Trajectory{
			Prompt: &sluicev1.Prompt{
				Group: &sluicev1.GroupPlace{RunId: "run", Step: 2}, Problem: &sluicev1.Problem{QuestionId: "q", Answer: rapid.String().Draw(t, "answer")},
				GroupSize: 2, GroupsInStep: 1, Mode: sluicev1.Mode_MODE_TRAIN,
			},
			SampleIndex: 1, Copy: 9, EndReason: sluicev1.EndReason_END_REASON_ANSWER, FinalText: rapid.String().Draw(t, "text"),
			PromptTokens: rapid.SliceOf(rapid.Uint32()).Draw(t, "prompt"), CodeCalls: 2,
		}
		for range rapid.IntRange(0, 3).Draw(t, "turns") {
			turn := &sluicev1.Turn{Text: rapid.String().Draw(t, "turn"), Truncated: rapid.Bool().Draw(t, "truncated"), GlueTokens: rapid.SliceOf(rapid.Uint32()).Draw(t, "glue")}
			for range rapid.IntRange(0, 5).Draw(t, "tokens") {
				turn.Tokens = append(turn.Tokens, rapid.Uint32().Draw(t, "token"))
				turn.Logprobs = append(turn.Logprobs, rapid.SampledFrom([]float32{-1.5, 0, -math.MaxFloat32, float32(math.Inf(-1)), float32(math.NaN())}).Draw(t, "logprob"))
				turn.PolicyVersions = append(turn.PolicyVersions, 1)
			}
			if rapid.IntRange(0, 9).Draw(t, "unequal") == 0 {
				turn.PolicyVersions = append(turn.PolicyVersions, 1)
			}
			traj.Turns = append(traj.Turns, turn)
		}
		var m proto.Message = traj
		switch rapid.IntRange(0, 2).Draw(t, "in") {
		case 1:
			m = &sluicev1.Scored{Trajectory: traj, UngradedReason: "why"}
		case 2:
			traj.EndReason = 0
			traj.Turns = append(traj.Turns, &sluicev1.Turn{Kind: sluicev1.TurnKind_TURN_KIND_TOOL, Code: rapid.String().Draw(t, "code")})
			m = &sluicev1.CodeCall{Trajectory: traj, CallId: "c"}
		}
		rec, err := Rebuild(m, SchemaVersion)
		if err != nil {
			t.Fatal(err)
		}
		if rapid.IntRange(0, 4).Draw(t, "broken") == 0 && len(rec.Value) > 0 {
			rec.Value[rapid.IntRange(0, len(rec.Value)-1).Draw(t, "at")] ^= byte(1 << rapid.IntRange(0, 7).Draw(t, "bit"))
		}
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
		if got, ok := packedVarints(protowire.BytesType, body); got != want || ok != wantOK {
			t.Fatalf("%x: %d, %v; want %d, %v", body, got, ok, want, wantOK)
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
