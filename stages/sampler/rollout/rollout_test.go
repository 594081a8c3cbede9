package rollout_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
	"github.com/sluice-rl/sluice/stages/sampler/observation"
	"github.com/sluice-rl/sluice/stages/sampler/rollout"
	"github.com/sluice-rl/sluice/stages/sampler/rollout/rollouttest"
	"github.com/sluice-rl/sluice/stages/sampler/toolcall"
)

func config(t testing.TB) rollout.Config {
	t.Helper()
	d, err := observation.NewDefuser(observation.Qwen())
	if err != nil {
		t.Fatal(err)
	}
	return rollout.Config{Protocol: toolcall.Qwen{}, Defuser: d, Glue: rollouttest.Glue(), Stage: "sampler"}
}

// prompt has the default budgets.
func prompt(question string) *sluicev1.Prompt {
	return &sluicev1.Prompt{
		Group:     &sluicev1.GroupPlace{RunId: "run", Step: 1},
		Problem:   &sluicev1.Problem{QuestionId: "q", Question: question, Answer: "2"},
		GroupSize: 8, GroupsInStep: 1, Mode: sluicev1.Mode_MODE_TRAIN,
		Budgets:     &sluicev1.Budgets{CodeCalls: 4, Turns: 6, TrajectoryTokens: 8192, TurnTokens: 1024, ObservationTokens: 512, ExecutionTimeoutMs: 30_000},
		Sampling:    &sluicev1.SamplingParameters{Temperature: 1, TopP: 1},
		ToolEnabled: true, ToolProtocol: "qwen",
	}
}

func TestOverlapIsTheLongestSuffixThatIsAPrefix(t *testing.T) {
	for _, c := range []struct {
		sampled, closing []uint32
		want             int
	}{
		{nil, nil, 0},
		{[]uint32{1}, nil, 0},
		{nil, []uint32{1}, 0},
		{[]uint32{4, 0, 1, 1}, []uint32{1, 1}, 2},
		{[]uint32{2, 1}, []uint32{2, 0, 2}, 0},
		{[]uint32{5, 9}, []uint32{9, 10}, 1},
		{[]uint32{9, 10}, []uint32{9, 10}, 2},
		{[]uint32{9, 10, 7}, []uint32{9, 10}, 0},
		{[]uint32{1}, []uint32{1, 1, 1}, 1},
	} {
		if got := rollout.Overlap(c.sampled, c.closing); got != c.want {
			t.Errorf("Overlap(%v, %v) = %d, want %d", c.sampled, c.closing, got, c.want)
		}
	}
}

// Whatever policy and programs do, a trajectory ends within its budgets, its record is
// valid and every prompt begins with all tokens before it.
func TestEveryTrajectoryEndsWithinItsBudgets(t *testing.T) {
	cfg := config(t)
	call := "<tool_call><function=code_interpreter><parameter=code>print(1)</parameter></function></tool_call>"
	rapid.Check(t, func(rt *rapid.T) {
		p := prompt("1+1?")
		b := p.GetBudgets()
		b.CodeCalls = rapid.Uint32Range(1, 4).Draw(rt, "code calls")
		b.Turns = rapid.Uint32Range(1, 4).Draw(rt, "turns")
		b.TrajectoryTokens = rapid.Uint32Range(80, 1200).Draw(rt, "tokens")
		b.TurnTokens = rapid.Uint32Range(1, 300).Draw(rt, "turn tokens")
		b.ObservationTokens = rapid.Uint32Range(1, 300).Draw(rt, "observation tokens")
		r := rollout.Start(cfg, p, 0, 1, rollouttest.Prompt(rollout.Conversation(p, "Use the tool.")), epoch)
		var before []uint32
		for steps := 0; ; steps++ {
			if steps > 500 {
				rt.Fatalf("not at its end after %d steps", steps)
			}
			var err error
			switch step := r.Next().(type) {
			case rollout.Sample:
				if step.MaxTokens < 1 {
					rt.Fatalf("asks for %d tokens", step.MaxTokens)
				}
				if len(step.Prompt) < len(before) || rollouttest.Text(step.Prompt[:len(before)]) != rollouttest.Text(before) {
					rt.Fatalf("prompt %q does not begin with %q", rollouttest.Text(step.Prompt), rollouttest.Text(before))
				}
				raw := rapid.SampledFrom([]string{call, call + "<|im_end|>", call + "<|im_end|>\n", `\boxed{2}`, "<tool_call>", "数"}).Draw(rt, "turn")
				c := rollout.Completion{Tokens: rollouttest.Tokens(raw), Text: rollouttest.WithoutSpecial(raw), Started: epoch, Ended: epoch}
				if cut := rapid.IntRange(0, 4).Draw(rt, "cut"); cut == 0 && len(raw) > 2 {
					c.Tokens, c.Text, c.Finish = c.Tokens[:2], raw[:2], rollout.Aborted
				}
				if len(c.Tokens) > step.MaxTokens {
					c.Tokens, c.Text, c.Finish = c.Tokens[:step.MaxTokens], raw[:step.MaxTokens], rollout.Length
				}
				c.Logprobs = make([]float32, len(c.Tokens))
				c.Versions = []rollout.Versions{{Version: 1, Count: len(c.Tokens)}}
				before = append(step.Prompt, c.Tokens...)
				err = r.Sampled(c)
			case rollout.Call:
				err = r.Executed(execution(rapid.StringN(0, 400, -1).Draw(rt, "stdout"), nil), epoch)
			case rollout.Observe:
				err = r.Observed(rollouttest.Tail(step.Text), epoch)
			case rollout.End:
				checkEnd(rt, r.Trajectory())
				return
			}
			if err != nil {
				rt.Fatal(err)
			}
		}
	})
}

// Every turn that travels bears a digest of what was sampled, and one that was changed
// on its way is not gone on with.
func TestABrokenCustodyEndsTheTrajectory(t *testing.T) {
	sampled := func() *sluicev1.Trajectory {
		p := prompt("6*7?")
		r := rollout.Start(config(t), p, 0, 1, rollouttest.Prompt(rollout.Conversation(p, "Use the tool.")), epoch)
		const raw = "<tool_call>\n<function=code_interpreter>\n<parameter=code>\nprint(1)\n</parameter>\n</function>\n</tool_call><|im_end|>"
		call := rollouttest.Tokens(raw)
		if err := r.Sampled(rollout.Completion{Tokens: call, Logprobs: make([]float32, len(call)), Text: rollouttest.WithoutSpecial(raw), Versions: []rollout.Versions{{Version: 1, Count: len(call)}}, Started: epoch, Ended: epoch}); err != nil {
			t.Fatal(err)
		}
		return r.Trajectory()
	}
	whole, err := rollout.Resume(config(t), sampled(), epoch)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := whole.Next().(rollout.Call); !ok {
		t.Errorf("an unbroken one wants %T, not its call: %s", whole.Next(), whole.Trajectory().GetEndDetail())
	}
	broken := sampled()
	broken.Turns[0].Logprobs[0] ^= 1
	r, err := rollout.Resume(config(t), broken, epoch)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := r.Next().(rollout.End); !ok {
		t.Errorf("a broken one wants %T, not its end", r.Next())
	}
	r.GiveUp("the sandbox is gone", epoch)
	if got := r.Trajectory(); got.GetEndReason() != sluicev1.EndReason_END_REASON_PROTOCOL_FAULT || !strings.Contains(got.GetEndDetail(), "custody is broken: turn 0") {
		t.Errorf("ended as %v: %s; want a protocol fault that names the turn", got.GetEndReason(), got.GetEndDetail())
	}
}

func checkEnd(rt *rapid.T, t *sluicev1.Trajectory) {
	if _, err := codec.Encode(t); err != nil {
		rt.Fatal(err)
	}
	b := t.GetPrompt().GetBudgets()
	total := tokens.Count(t.GetPromptTokens())
	for i, turn := range t.GetTurns() {
		total += tokens.Count(turn.GetTokens()) + tokens.Count(turn.GetGlueTokens())
		if n := tokens.Count(turn.GetTokens()); n > int(b.GetTurnTokens()) {
			rt.Fatalf("turn %d has %d tokens of %d allowed", i, n, b.GetTurnTokens())
		}
	}
	if total > int(b.GetTrajectoryTokens()) || t.GetCodeCalls() > b.GetCodeCalls() || len(t.GetTurns()) > int(b.GetTurns()) {
		rt.Fatalf("%d tokens, %d code calls, %d turns: over budgets %v", total, t.GetCodeCalls(), len(t.GetTurns()), b)
	}
	switch t.GetEndReason() {
	case sluicev1.EndReason_END_REASON_PROTOCOL_FAULT, sluicev1.EndReason_END_REASON_INFRA_ERROR, sluicev1.EndReason_END_REASON_UNSPECIFIED:
		rt.Fatalf("ended as %s: %s", t.GetEndReason(), t.GetEndDetail())
	}
}

// BenchmarkTrajectory is a trajectory of two code calls and an answer.
func BenchmarkTrajectory(b *testing.B) {
	cfg := config(b)
	p := prompt("What is the sum of the first hundred primes?")
	start := rollouttest.Prompt(rollout.Conversation(p, rollout.SystemPrompt))
	call := rollouttest.Completion{Raw: "<tool_call>\n<function=code_interpreter>\n<parameter=code>\nprint(sum(range(100)))\n</parameter>\n</function>\n</tool_call><|im_end|>"}
	answer := rollouttest.Completion{Raw: `\boxed{24133}<|im_end|>`}
	call.Logprobs = make([]float32, len(call.Raw))
	answer.Logprobs = make([]float32, len(answer.Raw))
	b.ReportAllocs()
	for b.Loop() {
		script := rollouttest.Script{
			Completions: []rollouttest.Completion{call, call, answer},
			Executions:  []*sluicev1.Execution{execution("4950\n", nil), execution("24133\n", nil)},
		}
		r := rollout.Start(cfg, p, 0, 1, start, epoch)
		if err := script.Play(r, epoch); err != nil {
			b.Fatal(err)
		}
	}
}

// What the policy sees of a program that ran too long is an option, and the turn says
// which was taken.
func TestTheFormOfATimeoutIsRecorded(t *testing.T) {
	for form, want := range map[observation.Timeout]struct{ text, recorded string }{
		"":                  {"Error: execution timed out after 2 seconds.", ""},
		observation.Message: {"Error: execution timed out after 2 seconds.", ""},
		observation.Output:  {"so far\nError: execution timed out after 2 seconds.", "output"},
	} {
		cfg := config(t)
		cfg.Timeout = form
		p := prompt("6*7?")
		r := rollout.Start(cfg, p, 0, 1, rollouttest.Prompt(rollout.Conversation(p, "Use the tool.")), epoch)
		const raw = "<tool_call>\n<function=code_interpreter>\n<parameter=code>\nprint(1)\n</parameter>\n</function>\n</tool_call><|im_end|>"
		call := rollouttest.Tokens(raw)
		if err := r.Sampled(rollout.Completion{Tokens: call, Logprobs: make([]float32, len(call)), Text: rollouttest.WithoutSpecial(raw), Versions: []rollout.Versions{{Version: 1, Count: len(call)}}, Started: epoch, Ended: epoch}); err != nil {
			t.Fatal(err)
		}
		run := &sluicev1.Execution{Outcome: sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_TIMEOUT, TimeoutMs: 2000, Stdout: "so far\n"}
		if err := r.Executed(run, epoch); err != nil {
			t.Fatal(err)
		}
		step, ok := r.Next().(rollout.Observe)
		if !ok || !strings.Contains(step.Text, want.text) {
			t.Fatalf("%q: next is %+v, want %q observed", form, r.Next(), want.text)
		}
		if err := r.Observed(rollouttest.Tail(step.Text), epoch); err != nil {
			t.Fatal(err)
		}
		if turn := r.Trajectory().GetTurns()[0]; turn.GetTimeoutObservation() != want.recorded || !strings.HasPrefix(turn.GetObservation(), want.text[:6]) {
			t.Errorf("%q: recorded as %q with %q", form, turn.GetTimeoutObservation(), turn.GetObservation())
		}
	}
}
