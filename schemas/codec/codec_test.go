package codec

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sluice-rl/sluice/schemas/custody"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
)

var rewrite = flag.Bool("rewrite", false, "write the golden records anew")

var at = timestamppb.New(time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC))

func prompt() *sluicev1.Prompt {
	return &sluicev1.Prompt{
		Group:     &sluicev1.GroupPlace{RunId: "demo", Incarnation: 1, Step: 3, Slot: 2},
		Problem:   &sluicev1.Problem{QuestionId: "q-17", Question: "What is 6*7?", Answer: "42", DataSource: "gsm8k"},
		GroupSize: 8, GroupsInStep: 4,
		Budgets: &sluicev1.Budgets{
			CodeCalls: 4, Turns: 6, TrajectoryTokens: 8192, TurnTokens: 1024, ObservationTokens: 512, ExecutionTimeoutMs: 30000,
		},
		Sampling: &sluicev1.SamplingParameters{Temperature: 1, TopP: 1},
		Mode:     sluicev1.Mode_MODE_TRAIN, ToolEnabled: true, ToolProtocol: "qwen", RunSeed: 7, FedAt: at,
	}
}

func trajectory() *sluicev1.Trajectory {
	t := &sluicev1.Trajectory{
		Prompt: prompt(), SampleIndex: 5, Copy: 0xc0ffee, PromptTokens: tokens.IDs(1, 2, 3),
		Turns: []*sluicev1.Turn{
			{
				Tokens: tokens.IDs(10, 11), Logprobs: tokens.Floats(-0.5, -0.25), Versions: tokens.Versions(3, 4),
				Text: "print", Kind: sluicev1.TurnKind_TURN_KIND_TOOL, Code: "print(6*7)",
				Execution:   &sluicev1.Execution{CallId: "c", Outcome: sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_OK, Stdout: "42\n"},
				Observation: "42\n", GlueTokens: tokens.IDs(20, 21), SampleStartedAt: at, SampleEndedAt: at,
			},
			{
				Tokens: tokens.IDs(12), Logprobs: tokens.Floats(-1), Versions: tokens.Versions(4),
				Text: `\boxed{42}`, Kind: sluicev1.TurnKind_TURN_KIND_ANSWER,
			},
		},
		EndReason: sluicev1.EndReason_END_REASON_ANSWER, FinalText: `\boxed{42}`, CodeCalls: 1, Executions: 1,
		EndedBy: "sampler", StartedAt: at, EndedAt: at,
	}
	custody.SealAll(t)
	return t
}

func scored() *sluicev1.Scored {
	return &sluicev1.Scored{
		Trajectory: trajectory(), Graded: true, Reward: 1, Correct: true, ValidFormat: true, Answer: "42",
		Verdict:  &sluicev1.Verdict{Outcome: sluicev1.VerdictOutcome_VERDICT_OUTCOME_EQUAL, Method: "rational"},
		Scores:   []*sluicev1.Score{{Name: "outcome", Version: "1", Reward: 1}},
		ScoredAt: at,
	}
}

func call() *sluicev1.CodeCall {
	t := trajectory()
	t.Turns = t.Turns[:1]
	t.EndReason = 0
	return &sluicev1.CodeCall{Trajectory: t, CallId: "c", RequestedAt: at}
}

// examples has one valid message of every record type.
func examples() []proto.Message {
	return []proto.Message{
		prompt(), trajectory(), scored(), call(),
		&sluicev1.CodeResult{Trajectory: call().Trajectory, CallId: "c", Execution: trajectory().Turns[0].Execution},
		&sluicev1.GroupMember{Scored: scored(), TakenAt: at},
		&sluicev1.GroupClosed{
			Group: prompt().Group, QuestionId: "q-17", Mode: sluicev1.Mode_MODE_TRAIN, GroupSize: 2, GroupsInStep: 4,
			Closing: sluicev1.Closing_CLOSING_USED, Reason: "complete", Graded: 2,
			Members: []*sluicev1.MemberClosing{
				{SampleIndex: 0, Copy: 1, Fate: sluicev1.MemberFate_MEMBER_FATE_USED, Reward: 1, Advantage: 1},
				{SampleIndex: 1, Copy: 2, Fate: sluicev1.MemberFate_MEMBER_FATE_USED, Reward: -1, Advantage: -1},
			},
			OpenedAt: at, ClosedAt: at,
		},
		&sluicev1.StepBatch{
			RunId: "demo", Step: 3, MicroBatches: 1, N: 2, ClipLow: 0.8, ClipHigh: 1.28,
			TokenReduction: sluicev1.TokenReduction_TOKEN_REDUCTION_SUM, BatchedAt: at,
		},
		&sluicev1.MicroBatch{
			RunId: "demo", Step: 3, ClipLow: 0.8, ClipHigh: 1.28, TokenReduction: sluicev1.TokenReduction_TOKEN_REDUCTION_SUM,
			PaddedTokens: 2, Scale: 0.5,
			Data: []*sluicev1.Datum{{
				InputTokens: tokens.IDs(1, 2), TargetTokens: tokens.IDs(2, 3), BehaviourLogprobs: tokens.Floats(0, -0.5),
				Advantages: tokens.Floats(0, 1), LossMask: []byte{0, 1},
			}},
		},
		&sluicev1.PolicyUpdate{RunId: "demo", Step: 3, PolicyVersion: 4, Trained: true, PublishedAt: at},
		&sluicev1.TrainerAnnotation{RunId: "demo", Step: 3, SampleIndex: 1, Copy: 7, PolicyVersion: 3, Logprobs: tokens.Floats(-0.5), BehaviourLogprobs: tokens.Floats(-0.25), Entropy: tokens.Floats(0.1), AnnotatedAt: at},
		&sluicev1.TrainerReport{RunId: "demo", Step: 3, PolicyVersion: 4, Extra: map[string]float64{"b": 2, "a": 1}},
		&sluicev1.DeadLetter{Stage: "sampler", SourceTopic: "prompts", Key: []byte("q-17"), ErrorType: "undecodable", Value: []byte{0xff}},
	}
}

func TestEveryTypeRoundTrips(t *testing.T) {
	for _, m := range examples() {
		rec, err := Encode(m)
		if err != nil {
			t.Errorf("Encode(%s): %v", TypeName(m), err)
			continue
		}
		got, err := Decode(rec)
		if err != nil {
			t.Errorf("Decode(%s): %v", TypeName(m), err)
			continue
		}
		if diff := cmp.Diff(m, got, protocmp.Transform()); diff != "" {
			t.Errorf("%s changed (-want +got):\n%s", TypeName(m), diff)
		}
		if New(TypeName(m)) == nil {
			t.Errorf("New(%q) = nil: a record of it could not be read", TypeName(m))
		}
	}
}

// The bytes on the wire are a promise to recorded runs: a change that shows here
// needs a new schema version.
func TestGolden(t *testing.T) {
	for _, m := range examples() {
		rec, err := Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		fmt.Fprintf(&b, "key %q\n", rec.Key)
		for _, h := range rec.Headers {
			fmt.Fprintf(&b, "%s %s\n", h.Key, hex.EncodeToString(h.Value))
		}
		fmt.Fprintf(&b, "value\n%s", hex.Dump(rec.Value))
		path := filepath.Join("testdata", TypeName(m)+".golden")
		if *rewrite {
			if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Errorf("no golden for %s: %v (go test -rewrite writes it)", TypeName(m), err)
			continue
		}
		if diff := cmp.Diff(string(want), b.String()); diff != "" {
			t.Errorf("%s is encoded differently (-golden +now):\n%s", TypeName(m), diff)
		}
	}
}

func TestKeysAndOrigins(t *testing.T) {
	want := map[string]string{
		"Prompt": "q-17", "CodeCall": "q-17", "CodeResult": "q-17", "Trajectory": "q-17", "Scored": "q-17",
		"GroupMember": "demo", "GroupClosed": "demo", "StepBatch": "demo", "MicroBatch": "demo",
		"PolicyUpdate": "demo.0/3", "TrainerReport": "demo", "TrainerAnnotation": "demo", "DeadLetter": "q-17",
	}
	for _, m := range examples() {
		if got := Key(m); got != want[TypeName(m)] {
			t.Errorf("Key(%s) = %q, want %q", TypeName(m), got, want[TypeName(m)])
		}
	}
	rec, err := Encode(call())
	if err != nil {
		t.Fatal(err)
	}
	rec.Value = []byte{0xff} // the value is lost, the origin is not
	o, ok := Origin(rec.Headers)
	if !ok {
		t.Fatal("Origin: not there")
	}
	ended := GivenUp(o, "code-executor", "cannot be read", func() uint64 { return 1 })
	if len(ended) != 1 || ended[0].GetSampleIndex() != 5 || ended[0].GetCopy() != 0xc0ffee {
		t.Fatalf("GivenUp = %v, want the one member 5", ended)
	}
	if err := Validate(ended[0]); err != nil {
		t.Errorf("a given-up trajectory must be valid: %v", err)
	}
}

func TestGivenUpPromptEndsEveryMember(t *testing.T) {
	n := uint64(0)
	ended := GivenUp(OriginOf(prompt()), "sampler", "cannot be read", func() uint64 { n++; return n - 1 })
	if len(ended) != 8 {
		t.Fatalf("%d trajectories, want the group's 8", len(ended))
	}
	seen := map[uint64]bool{}
	for i, tr := range ended {
		if err := Validate(tr); err != nil {
			t.Errorf("member %d: %v", i, err)
		}
		if tr.GetSampleIndex() != uint32(i) || seen[tr.GetCopy()] {
			t.Errorf("member %d has index %d, copy %d: want its own of each", i, tr.GetSampleIndex(), tr.GetCopy())
		}
		seen[tr.GetCopy()] = true
	}
}

func TestUnknownFieldsSurvive(t *testing.T) {
	rec, err := Encode(trajectory())
	if err != nil {
		t.Fatal(err)
	}
	rec.Value = protowire.AppendTag(rec.Value, 1000, protowire.BytesType)
	rec.Value = protowire.AppendString(rec.Value, "from a later version")
	m, err := Decode(rec)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(again.Value, []byte("from a later version")) {
		t.Error("a field of a later version was lost on the way through")
	}
}

func TestDecodeRefuses(t *testing.T) {
	good, err := Encode(prompt())
	if err != nil {
		t.Fatal(err)
	}
	with := func(key, value string) Record {
		rec := Record{Key: good.Key, Value: good.Value}
		for _, h := range good.Headers {
			if h.Key == key {
				h.Value = []byte(value)
			}
			if value != "" || h.Key != key {
				rec.Headers = append(rec.Headers, h)
			}
		}
		return rec
	}
	for _, c := range []struct {
		name string
		rec  Record
		is   error
		says string
	}{
		{"no type", with(HeaderType, ""), ErrUndecodable, HeaderType},
		{"unknown type", with(HeaderType, "Secret\x1b[2J"), ErrUndecodable, `"Secret\x1b[2J"`},
		{"schema not a number", with(HeaderSchema, "one"), ErrUndecodable, `"one"`},
		{"newer schema", with(HeaderSchema, "2"), ErrNewerSchema, "upgrade"},
		{"cut value", Record{Value: good.Value[:5], Headers: good.Headers}, ErrUndecodable, "5 bytes"},
		{"other type's value", with(HeaderType, "StepBatch"), nil, ""},
	} {
		_, err := Decode(c.rec)
		if err == nil || (c.is != nil && !errors.Is(err, c.is)) || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%s: error %v, want %v that says %q", c.name, err, c.is, c.says)
		}
	}
}

// What the topic says, a record need not say: a trainer in another language writes the
// message and its key.
func TestHeadersAreOptionalWhereTheTopicCarriesOneType(t *testing.T) {
	want := &sluicev1.PolicyUpdate{RunId: "demo", Step: 3, PolicyVersion: 4, Trained: true}
	rec, err := Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	bare := Record{Key: rec.Key, Value: rec.Value}
	got, err := Decode(bare, "PolicyUpdate")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(proto.Message(want), got, protocmp.Transform()); diff != "" {
		t.Errorf("-written +read:\n%s", diff)
	}
	if _, err := Decode(bare, "StepBatch", "MicroBatch"); !errors.Is(err, ErrUndecodable) || !strings.Contains(err.Error(), "carries StepBatch, MicroBatch") {
		t.Errorf("on a topic of two types: %v", err)
	}
	if m, err := Decode(rec, "StepBatch", "MicroBatch"); err != nil || TypeName(m) != "PolicyUpdate" {
		t.Errorf("the header has precedence: %T, %v", m, err)
	}
	newer := Record{Key: rec.Key, Value: rec.Value, Headers: []Header{{HeaderSchema, []byte("2")}}}
	if _, err := Decode(newer, "PolicyUpdate"); !errors.Is(err, ErrNewerSchema) {
		t.Errorf("a newer schema: %v", err)
	}
	if _, err := Decode(Record{Value: []byte("no protobuf")}, "PolicyUpdate"); !errors.Is(err, ErrUndecodable) || ErrorType(err) != "undecodable" {
		t.Errorf("bytes of something else: %v", err)
	}
	if _, err := Decode(Record{}, "PolicyUpdate"); !errors.Is(err, ErrInvalid) {
		t.Errorf("an empty record: %v", err)
	}
}

func TestValidateNamesWhatIsWrong(t *testing.T) {
	edit := func(f func(*sluicev1.Trajectory)) proto.Message { m := trajectory(); f(m); return m }
	editPrompt := func(f func(*sluicev1.Prompt)) proto.Message { m := prompt(); f(m); return m }
	datum := func(f func(*sluicev1.Datum)) proto.Message {
		for _, m := range examples() {
			if b, ok := m.(*sluicev1.MicroBatch); ok {
				f(b.Data[0])
				return b
			}
		}
		panic("no example")
	}
	for _, c := range []struct {
		name string
		m    proto.Message
		says string
	}{
		{"unequal lengths", edit(func(m *sluicev1.Trajectory) { m.Turns[0].Logprobs = make([]byte, 12) }),
			"demo.1/3/2/5 turn 0: 2 tokens, 3 logprobs, versions of 2"},
		{"logprob not a number", edit(func(m *sluicev1.Trajectory) { m.Turns[1].Logprobs = tokens.Floats(float32(math.NaN())) }), "logprobs[0] is NaN"},
		{"logprob without bounds", edit(func(m *sluicev1.Trajectory) {
			m.Turns[0].Logprobs = tokens.Floats(-1, float32(math.Inf(-1)))
		}), "logprobs[1] is -Inf"},
		{"half a token", edit(func(m *sluicev1.Trajectory) { m.Turns[0].Tokens = m.Turns[0].Tokens[:6] }), "turn 0: tokens has 6 bytes, want 4 for each"},
		{"half a logprob", edit(func(m *sluicev1.Trajectory) { m.Turns[0].Logprobs = m.Turns[0].Logprobs[:7] }), "logprobs has 7 bytes"},
		{"half a prompt token", edit(func(m *sluicev1.Trajectory) { m.PromptTokens = m.PromptTokens[1:] }), "prompt_tokens has 11 bytes"},
		{"half a glue token", edit(func(m *sluicev1.Trajectory) { m.Turns[0].GlueTokens = m.Turns[0].GlueTokens[1:] }), "glue_tokens has 7 bytes"},
		{"an empty span", edit(func(m *sluicev1.Trajectory) {
			m.Turns[1].Versions = append(m.Turns[1].Versions, &sluicev1.VersionSpan{})
		}), "versions[1].count is 0"},
		{"a span in two", edit(func(m *sluicev1.Trajectory) { m.Turns[0].Versions[0].Version = 4 }), "versions[1].version is 4 as in the span before"},
		{"spans beyond counting", edit(func(m *sluicev1.Trajectory) { m.Turns[0].Versions[0].Count = math.MaxUint32 }), "versions of 4294967296"},
		{"a cut digest", edit(func(m *sluicev1.Trajectory) { m.Turns[0].Digest = m.Turns[0].Digest[1:] }), "digest has 31 bytes"},
		{"no copy", edit(func(m *sluicev1.Trajectory) { m.Copy = 0 }), "copy is 0"},
		{"not ended", edit(func(m *sluicev1.Trajectory) { m.EndReason = 0 }), "end_reason"},
		{"sample index", edit(func(m *sluicev1.Trajectory) { m.SampleIndex = 8 }), "sample_index is 8 of group size 8"},
		{"step 0", editPrompt(func(m *sluicev1.Prompt) { m.Group.Step = 0 }), "step is 0"},
		{"run id", editPrompt(func(m *sluicev1.Prompt) { m.Group.RunId = "a/b" }), `"a/b"`},
		{"no reference", editPrompt(func(m *sluicev1.Prompt) { m.Problem.Answer = "" }), `question id "q-17" has no reference`},
		{"slot", editPrompt(func(m *sluicev1.Prompt) { m.Group.Slot = 4 }), "slot is 4 of groups_in_step 4"},
		{"a budget of 0", editPrompt(func(m *sluicev1.Prompt) { m.Budgets.Turns = 0 }), "budgets.turns is 0"},
		{"temperature", editPrompt(func(m *sluicev1.Prompt) { m.Sampling.Temperature = math.NaN() }), "temperature is NaN"},
		{"top_p 0", editPrompt(func(m *sluicev1.Prompt) { m.Sampling.TopP = 0 }), "top_p is 0"},
		{"call without code", func() proto.Message { m := call(); m.Trajectory.Turns[0].Code = ""; return m }(), "holds no code"},
		{"ungraded with a reward", func() proto.Message {
			m := scored()
			m.Graded, m.UngradedReason, m.Reward = false, "infra_error", -1
			return m
		}(), "bears reward -1"},
		{"reward not a number", func() proto.Message { m := scored(); m.Reward = math.Inf(1); return m }(), "reward is +Inf"},
		{"datum lengths", datum(func(d *sluicev1.Datum) { d.Advantages = d.Advantages[:4] }), "8 of behaviour_logprobs, 4 of advantages, 2 of loss_mask"},
		{"datum without loss", datum(func(d *sluicev1.Datum) {
			d.LossMask, d.BehaviourLogprobs, d.Advantages = make([]byte, 2), make([]byte, 8), make([]byte, 8)
		}), "all 0"},
		{"masked token with advantage", datum(func(d *sluicev1.Datum) { d.Advantages = tokens.Floats(1, 1) }), "token 0 is masked"},
		{"a mask of 2", datum(func(d *sluicev1.Datum) { d.LossMask = []byte{0, 2} }), "loss_mask[1] is 2"},
		{"not a record", &sluicev1.Budgets{}, "no record type"},
	} {
		err := Validate(c.m)
		if !errors.Is(err, ErrInvalid) || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%s: error %v, want ErrInvalid that says %q", c.name, err, c.says)
		}
	}
}

// Whatever a record holds, Decode answers with a valid message or a typed error, and
// what it took it writes back the same.
func FuzzDecode(f *testing.F) {
	for _, m := range examples() {
		rec, err := Encode(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(TypeName(m), rec.Value)
	}
	f.Fuzz(func(t *testing.T, name string, value []byte) {
		rec := Record{Value: value, Headers: []Header{{HeaderType, []byte(name)}, {HeaderSchema, []byte("1")}}}
		m, err := Decode(rec)
		if err != nil {
			if !errors.Is(err, ErrUndecodable) && !errors.Is(err, ErrInvalid) {
				t.Fatalf("untyped error: %v", err)
			}
			return
		}
		again, err := Encode(m)
		if err != nil {
			t.Fatalf("decoded but not encodable: %v", err)
		}
		m2, err := Decode(again)
		if err != nil {
			t.Fatalf("encoded but not decodable: %v", err)
		}
		if !proto.Equal(m, m2) && !hasNaN(m) {
			t.Fatal("round trip changed the message")
		}
	})
}

// hasNaN says whether a message differs from itself, as those with a NaN do.
func hasNaN(m proto.Message) bool { return !proto.Equal(m, proto.Clone(m)) }

func BenchmarkEncode(b *testing.B) {
	m := big()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Encode(m); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	rec, err := Encode(big())
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(rec.Value)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(rec); err != nil {
			b.Fatal(err)
		}
	}
}

// big is a trajectory of 4 turns of 1,024 tokens.
func big() *sluicev1.Trajectory {
	t := trajectory()
	turn := t.Turns[0]
	turn.Tokens, turn.Logprobs, turn.Versions = nil, nil, nil
	for i := range 1024 {
		turn.Tokens = tokens.AppendIDs(turn.Tokens, uint32(i*140))
		turn.Logprobs = tokens.AppendFloats(turn.Logprobs, -float32(i)/1024)
		turn.Versions = tokens.AppendVersion(turn.Versions, 4, 1)
	}
	t.Turns = []*sluicev1.Turn{turn, turn, turn, turn}
	return t
}
