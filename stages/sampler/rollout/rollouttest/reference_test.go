package rollouttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

const (
	prompt = `<|im_start|>system\nSYSTEM PROMPT<|im_end|>\n<|im_start|>user\n1+1?<|im_end|>\n<|im_start|>assistant\n`
	call   = `<tool_call><function=code_interpreter><parameter=code>print(2)</parameter></function></tool_call>`
	tail   = `<|im_end|>\n<|im_start|>tool\n2\n<|im_end|>\n<|im_start|>assistant\n`
)

// batch is one recorded trajectory of a call and an answer.
func batch(t *testing.T) Reference {
	t.Helper()
	zeros := func(n int) string { return "[0" + strings.Repeat(",0", n-1) + "]" }
	row := fmt.Sprintf(`{
		"questions": [{"question": "1+1?", "answer": "2"}],
		"config": {"group_size": 2, "max_code_calls": 1, "max_assistant_turns": 2, "max_trajectory_tokens": 4000, "max_assistant_tokens": 200, "max_tool_response_tokens": 100},
		"trajectories": [{"slot": 0, "sample_index": 1, "code_calls": 1, "final_text": "\\boxed{2}",
			"turns": [
				{"prompt": "%s", "completion": "%s", "logprobs": %s, "text": "%s"},
				{"prompt": "%s", "completion": "\\boxed{2}<|im_end|>", "logprobs": %s, "text": "\\boxed{2}"}],
			"executions": [{"code": "print(2)", "stdout": "2\n", "stderr": "", "returncode": 0, "timed_out": false}],
			"observations": ["2\n"]}]}`,
		prompt, call, zeros(len(call)), call, prompt+call+tail, zeros(len(`\boxed{2}<|im_end|>`)))
	var b Reference
	if err := json.Unmarshal([]byte(row), &b); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestReplayAgreesWithWhatWasRecorded(t *testing.T) {
	b := batch(t)
	got, err := b.Replay(b.Trajectories[0])
	if err != nil {
		t.Fatal(err)
	}
	if d := b.Trajectories[0].Disagreement(got); d != "" {
		t.Error(d)
	}
}

func TestDisagreementNamesWhatDiffers(t *testing.T) {
	for want, change := range map[string]func(*ReferenceTrajectory){
		"1 code calls, want 0": func(r *ReferenceTrajectory) { r.CodeCalls = 0 },
		"final text":           func(r *ReferenceTrajectory) { r.FinalText = "x" },
		"observations":         func(r *ReferenceTrajectory) { r.Observations[0] = "3\n" },
		"text of turn 1":       func(r *ReferenceTrajectory) { r.Turns[1].Text = "x" },
		"prompt of turn 1":     func(r *ReferenceTrajectory) { r.Turns[1].Prompt = "x" },
		"program 0":            func(r *ReferenceTrajectory) { r.Executions[0].Code = "print(3)" },
	} {
		b := batch(t)
		change(&b.Trajectories[0])
		got, err := b.Replay(b.Trajectories[0])
		if err != nil {
			t.Fatal(err)
		}
		if d := b.Trajectories[0].Disagreement(got); !strings.HasPrefix(d, want) {
			t.Errorf("Disagreement = %q, want %s...", d, want)
		}
	}
}

func TestPlayRefusesToLeaveItsScript(t *testing.T) {
	b := batch(t)
	short := b.Trajectories[0]
	short.Turns = short.Turns[:1]
	if _, err := b.Replay(short); !errors.Is(err, ErrScript) {
		t.Errorf("error with a turn missing = %v, want ErrScript", err)
	}
	long := batch(t).Trajectories[0]
	long.Turns = append(long.Turns, long.Turns[1])
	if _, err := b.Replay(long); !errors.Is(err, ErrScript) {
		t.Errorf("error with a turn too many = %v, want ErrScript", err)
	}
}
