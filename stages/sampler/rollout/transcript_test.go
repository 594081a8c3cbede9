package rollout_test

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-rl/sluice/schemas"
	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
	"github.com/sluice-rl/sluice/stages/sampler/rollout"
	"github.com/sluice-rl/sluice/stages/sampler/rollout/rollouttest"
)

var rewrite = flag.Bool("rewrite", false, "write what happened into the transcripts of testdata")

// A transcript is a sequence of blocks:
//
//	# remarks
//	> command key=value ...
//	input, as many lines as wanted
//	----
//	what the rollout then wants, or how it ended
//
// followed by an empty line. Commands are the cases of play.
type block struct {
	remarks []string
	command string
	input   string
	output  string
}

func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts in testdata (%v)", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			old, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var now bytes.Buffer
			p := player{t: t}
			for _, b := range parse(t, string(old)) {
				b.output = p.play(b)
				write(&now, b)
			}
			if *rewrite {
				if err := os.WriteFile(file, now.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := gocmp.Diff(string(old), now.String()); diff != "" {
				t.Errorf("%s (-written +happened; -rewrite accepts it):\n%s", file, diff)
			}
		})
	}
}

func parse(t *testing.T, s string) []block {
	var blocks []block
	var b block
	var into *string
	for line := range strings.Lines(s) {
		text := strings.TrimSuffix(line, "\n")
		switch {
		case into == nil && strings.HasPrefix(text, "> "):
			b.command, into = text[2:], &b.input
		case into == nil:
			b.remarks = append(b.remarks, text)
		case into == &b.input && text == "----":
			into = &b.output
		case into == &b.output && text == "":
			blocks, b, into = append(blocks, b), block{}, nil
		default:
			*into += line
		}
	}
	if into == &b.input {
		t.Fatalf("the block %q has no line ----", b.command)
	}
	if into != nil {
		blocks = append(blocks, b)
	}
	return blocks
}

func write(w *bytes.Buffer, b block) {
	for _, r := range b.remarks {
		fmt.Fprintln(w, r)
	}
	fmt.Fprintf(w, "> %s\n%s----\n%s\n", b.command, b.input, b.output)
}

type player struct {
	t *testing.T
	r *rollout.Rollout
}

var epoch = time.Unix(1_700_000_000, 0)

func (p *player) play(b block) string {
	p.t.Helper()
	args := strings.Fields(b.command)
	opts := map[string]string{}
	for _, a := range args[1:] {
		k, v, _ := strings.Cut(a, "=")
		opts[k] = v
	}
	input := strings.TrimSuffix(b.input, "\n")
	var err error
	switch args[0] {
	case "start":
		prompt := promptOf(input, opts)
		p.r = rollout.Start(config(p.t), prompt, 2, 0xc0ffee, rollouttest.Prompt(rollout.Conversation(prompt, "Use the tool.")), epoch)
	case "sampled":
		err = p.r.Sampled(completion(p.t, p.r.Next(), input, opts))
	case "executed":
		err = p.r.Executed(execution(input, opts), epoch)
	case "observed":
		text := input
		if step, ok := p.r.Next().(rollout.Observe); ok {
			text = step.Text
		}
		tail := rollouttest.Tail(text)
		if _, ok := opts["torn"]; ok {
			tail = tail[1:]
		}
		err = p.r.Observed(tail, epoch)
	case "travel":
		p.r, err = travel(p.t, p.r)
	case "give-up":
		p.r.Attempted(int(number(opts, "attempts", 0)))
		p.r.GiveUp(input, epoch)
	case "refuse":
		p.r.Refuse(input, epoch)
	default:
		p.t.Fatalf("no command %q", args[0])
	}
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	return describe(p.r)
}

// travel puts the trajectory through a record and takes it up again elsewhere.
func travel(t *testing.T, r *rollout.Rollout) (*rollout.Rollout, error) {
	step, ok := r.Next().(rollout.Call)
	if !ok {
		t.Fatalf("a rollout that wants %T does not travel", r.Next())
	}
	rec, err := codec.Encode(&sluicev1.CodeCall{Trajectory: r.Trajectory(), CallId: step.CallID})
	if err != nil {
		t.Fatal(err)
	}
	m, err := codec.Decode(rec)
	if err != nil {
		t.Fatal(err)
	}
	return rollout.Resume(config(t), m.(*sluicev1.CodeCall).GetTrajectory(), epoch)
}

func number(opts map[string]string, key string, otherwise uint32) uint32 {
	if v, ok := opts[key]; ok {
		n, err := strconv.ParseUint(v, 10, 32)
		if err != nil {
			panic(err)
		}
		return uint32(n)
	}
	return otherwise
}

func promptOf(question string, opts map[string]string) *sluicev1.Prompt {
	p := proto.Clone(prompt(question)).(*sluicev1.Prompt)
	b := p.GetBudgets()
	b.CodeCalls = number(opts, "code_calls", b.CodeCalls)
	b.Turns = number(opts, "turns", b.Turns)
	b.TrajectoryTokens = number(opts, "tokens", b.TrajectoryTokens)
	b.TurnTokens = number(opts, "turn_tokens", b.TurnTokens)
	b.ObservationTokens = number(opts, "observation_tokens", b.ObservationTokens)
	p.ToolEnabled = opts["tool"] != "off"
	return p
}

func completion(t *testing.T, step rollout.Step, raw string, opts map[string]string) rollout.Completion {
	c := rollout.Completion{
		Tokens: rollouttest.Tokens(raw), Text: rollouttest.WithoutSpecial(raw),
		Started: epoch, Ended: epoch, Attempts: int(number(opts, "attempts", 1)),
	}
	c.Versions = []rollout.Versions{{Version: number(opts, "version", 1), Count: len(c.Tokens) - int(number(opts, "unversioned", 0))}}
	if s, ok := step.(rollout.Sample); ok {
		switch opts["prompt"] {
		case "":
			c.Prompt = s.Prompt
		case "bos":
			c.Prompt = append([]uint32{1}, s.Prompt...)
		case "cut":
			c.Prompt = s.Prompt[3:]
		case "unsaid":
			c.PromptTokens = int(number(opts, "prompt_tokens", 0))
		}
	}
	if _, ok := opts["other_prompt"]; ok {
		c.Prompt = rollouttest.Tokens("something else")
	}
	c.Logprobs = make([]float32, number(opts, "logprobs", uint32(len(c.Tokens))))
	if _, ok := opts["nan"]; ok {
		c.Logprobs[0] = float32(math.NaN())
	}
	switch opts["finish"] {
	case "", "stop":
	case "length":
		c.Finish = rollout.Length
	case "abort":
		c.Finish = rollout.Aborted
	default:
		t.Fatalf("no finish %q", opts["finish"])
	}
	return c
}

func execution(input string, opts map[string]string) *sluicev1.Execution {
	e := &sluicev1.Execution{Outcome: sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_OK, TimeoutMs: 30_000, CallId: opts["call"]}
	if _, ok := opts["timeout"]; ok {
		e.Outcome = sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_TIMEOUT
	}
	if n, ok := opts["repeat"]; ok {
		times, _ := strconv.Atoi(n)
		input = strings.Repeat(input, times)
	}
	if code, ok := opts["exit"]; ok {
		n, _ := strconv.Atoi(code)
		e.Outcome, e.ExitCode, e.Stderr = sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_ERROR, int32(n), input
		return e
	}
	e.Stdout = input
	return e
}

// describe says what the rollout wants next, or how it ended.
func describe(r *rollout.Rollout) string {
	switch step := r.Next().(type) {
	case rollout.Sample:
		s := fmt.Sprintf("sample turn %d, at most %d tokens, on %d:\n", step.Turn, step.MaxTokens, len(step.Prompt))
		if step.Resumed > 0 {
			s = fmt.Sprintf("sample the rest of turn %d (aborted %d times), at most %d tokens, on %d:\n", step.Turn, step.Resumed, step.MaxTokens, len(step.Prompt))
		}
		return s + quoted(rollouttest.Text(step.Prompt))
	case rollout.Call:
		return fmt.Sprintf("call %s\n%s", step.CallID, quoted(step.Code))
	case rollout.Observe:
		return "observe\n" + quoted(step.Text)
	}
	t := r.Trajectory()
	s := fmt.Sprintf("end %s by %s", schemas.EnumText(t.GetEndReason()), t.GetEndedBy())
	if t.GetEndDetail() != "" {
		s += ": " + t.GetEndDetail()
	}
	if t.GetFailedAttempts() > 0 {
		s += fmt.Sprintf(" (%d attempts)", t.GetFailedAttempts())
	}
	s += fmt.Sprintf("\nfinal text %q\ncode calls %d, executions %d\n", t.GetFinalText(), t.GetCodeCalls(), t.GetExecutions())
	for i, turn := range t.GetTurns() {
		kind := cmp.Or(schemas.EnumText(turn.GetKind()), "unspecified")
		s += fmt.Sprintf("turn %d %s: %d tokens of versions %s, %d glue", i, kind, tokens.Count(turn.GetTokens()), versions(turn), tokens.Count(turn.GetGlueTokens()))
		if turn.GetInvalidReason() != "" {
			s += ", " + turn.GetInvalidReason()
		}
		if turn.GetTruncated() {
			s += ", truncated"
		}
		if turn.GetAborts() > 0 {
			s += fmt.Sprintf(", aborted %d times", turn.GetAborts())
		}
		if turn.GetAttempts() > 1 {
			s += fmt.Sprintf(", %d attempts", turn.GetAttempts())
		}
		s += "\n"
	}
	if err := codec.Validate(t); err != nil {
		s += "REFUSED BY THE CODEC: " + err.Error() + "\n"
	}
	return s
}

// quoted shows a text line by line, the middle of a long one left out.
func quoted(s string) string {
	if len(s) > 700 {
		s = s[:200] + "\n(...)\n" + s[len(s)-300:]
	}
	var b strings.Builder
	for line := range strings.Lines(s) {
		fmt.Fprintf(&b, "  %q\n", line)
	}
	if s == "" {
		b.WriteString("  \"\"\n")
	}
	return b.String()
}

// versions counts tokens by policy version: "3x5 4x7".
func versions(turn *sluicev1.Turn) string {
	var s []string
	for _, v := range turn.GetVersions() {
		s = append(s, fmt.Sprintf("%dx%d", v.GetVersion(), v.GetCount()))
	}
	if s == nil {
		return "none"
	}
	return strings.Join(s, " ")
}
