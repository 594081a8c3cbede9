package ppo_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"testing"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/chat"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/gsm8k"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/policy"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/tokenizer"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/worked"
)

// world is the pipeline in small: it rolls out, executes, grades and batches as the
// stages do, without any of their code.
type world struct {
	tok *tokenizer.Tokenizer
	pol *policy.Policy
	lib *worked.Library
}

func newWorld(t testing.TB) world {
	t.Helper()
	tok, err := tokenizer.New()
	if err != nil {
		t.Fatal(err)
	}
	lib, err := worked.Load(gsm8k.Sample)
	if err != nil {
		t.Fatal(err)
	}
	pol, err := policy.New(tok, lib)
	if err != nil {
		t.Fatal(err)
	}
	return world{tok: tok, pol: pol, lib: lib}
}

const tool = `{"type":"function","function":{"name":"code_interpreter"}}`

// trajectory is a rollout's tokens with the mask of what the policy sampled.
type trajectory struct {
	tokens    []uint32
	mask      []bool
	logprobs  []float32
	reward    float64
	calls     int
	failed    bool // the first execution
	corrected bool
}

func (tr *trajectory) glue(ids []uint32) {
	for _, id := range ids {
		tr.add(id, 0, false)
	}
}

func (tr *trajectory) add(id uint32, lp float32, sampled bool) {
	tr.tokens = append(tr.tokens, id)
	tr.logprobs = append(tr.logprobs, lp)
	tr.mask = append(tr.mask, sampled)
}

var (
	callForm = regexp.MustCompile(`(?s)^(.*)<tool_call>\n<function=code_interpreter>\n<parameter=code>\n(.*)\n</parameter>\n</function>\n</tool_call>$`)
	boxForm  = regexp.MustCompile(`\\boxed\{([^}]*)\}`)
)

func (w world) rollout(t testing.TB, params policy.Parameters, s *worked.Solution, seed uint64) trajectory {
	t.Helper()
	text, err := chat.Render([]chat.Message{{Role: "system", Content: "Use the tool."}, {Role: "user", Content: chat.Content(s.Question)}},
		chat.Options{Tools: []json.RawMessage{json.RawMessage(tool)}, AddGenerationPrompt: true})
	if err != nil {
		t.Fatal(err)
	}
	var tr trajectory
	tr.glue(w.tok.Encode(text))
	tr.reward = -1
	for turn := range 6 {
		g, err := w.pol.Sample(params, policy.Request{Prompt: tr.tokens, Seed: seed*10 + uint64(turn), MaxTokens: 1024, Sampling: policy.Plain})
		if err != nil {
			t.Fatal(err)
		}
		var ids []uint32
		for _, tok := range g.Tokens {
			tr.add(tok.ID, float32(tok.Logprob), true)
			ids = append(ids, tok.ID)
		}
		said, err := w.tok.Text(ids)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(said, "<tool_call>") {
			box := boxForm.FindAllStringSubmatch(said, -1)
			if len(box) > 0 && box[len(box)-1][1] == s.Answer {
				tr.reward, tr.corrected = 1, tr.failed && tr.calls > 1
			}
			return tr
		}
		call := callForm.FindStringSubmatch(strings.TrimSpace(said))
		if call == nil || strings.Contains(call[1], "<tool_call>") || strings.Contains(call[2], "<tool_call>") || tr.calls == 4 {
			return tr
		}
		out, err := execute(call[2])
		if err != nil {
			out = err.Error()
			tr.failed = tr.failed || tr.calls == 0
		}
		tr.calls++
		tr.glue(w.tok.Encode("\n<|im_start|>user\n<tool_response>\n" + out + "\n</tool_response><|im_end|>\n" + chat.GenerationPrompt(false)))
	}
	return tr
}

// execute runs what the policy's programs consist of: assignments, then a print.
func execute(code string) (string, error) {
	vars := map[string]*big.Rat{}
	var out []string
	for _, line := range strings.Split(code, "\n") {
		expr, isPrint := strings.CutPrefix(line, "print(")
		if isPrint {
			inner, closed := strings.CutSuffix(expr, ")")
			if !closed {
				return "", errors.New("  File \"<string>\", line 9\nSyntaxError: '(' was never closed")
			}
			expr = inner
		}
		name := ""
		if n, e, ok := strings.Cut(line, " = "); ok && !isPrint {
			name, expr = n, e
		}
		v, err := worked.Eval(expr, vars)
		var undefined *worked.UndefinedError
		switch {
		case errors.As(err, &undefined):
			return "", fmt.Errorf("Traceback (most recent call last):\n  File \"<string>\", line 9, in <module>\nNameError: name '%s' is not defined", undefined.Name)
		case err != nil:
			return "", err
		case isPrint:
			out = append(out, worked.Decimal(v))
		case name != "":
			vars[name] = v
		}
	}
	return strings.Join(out, "\n"), nil
}

// batch makes a step of groups into one StepBatch, as the batcher does: advantage =
// reward - group mean, scaled by (data in the micro-batch / N).
func batch(step uint64, groups [][]trajectory, reduction sluicev1.TokenReduction, perMicro int) (*sluicev1.StepBatch, []*sluicev1.MicroBatch) {
	n := 0
	var data []*sluicev1.Datum
	for slot, g := range groups {
		var sum float64
		for _, tr := range g {
			n++
			sum += tr.reward
		}
		mean := sum / float64(len(g))
		for i, tr := range g {
			if a := tr.reward - mean; a != 0 {
				data = append(data, datum(tr, a, slot, i))
			}
		}
	}
	sb := &sluicev1.StepBatch{RunId: "r", Step: step, N: uint32(n), ClipLow: 0.8, ClipHigh: 1.28, TokenReduction: reduction}
	var micro []*sluicev1.MicroBatch
	for len(data) > 0 {
		k := min(perMicro, len(data))
		m := &sluicev1.MicroBatch{RunId: "r", Step: step, Index: uint32(len(micro)), Data: data[:k], ClipLow: 0.8, ClipHigh: 1.28, TokenReduction: reduction, Scale: float64(k) / float64(n)}
		for _, d := range m.Data {
			scaled := tokens.ReadFloats(d.Advantages)
			for i := range scaled {
				scaled[i] *= float32(m.Scale)
			}
			d.Advantages = tokens.Floats(scaled...)
		}
		micro = append(micro, m)
		data = data[k:]
	}
	sb.MicroBatches = uint32(len(micro))
	return sb, micro
}

func datum(tr trajectory, advantage float64, slot, index int) *sluicev1.Datum {
	n := len(tr.tokens)
	d := &sluicev1.Datum{
		Slot: uint32(slot), SampleIndex: uint32(index), InputTokens: tokens.IDs(tr.tokens[:n-1]...), TargetTokens: tokens.IDs(tr.tokens[1:]...),
		BehaviourLogprobs: tokens.Floats(tr.logprobs[1:]...), LossMask: make([]byte, n-1),
	}
	advantages := make([]float32, n-1)
	for i, m := range tr.mask[1:] {
		if m {
			d.LossMask[i], advantages[i] = 1, float32(advantage)
		}
	}
	d.Advantages = tokens.Floats(advantages...)
	return d
}
