package rollouttest

import (
	"fmt"
	"time"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
	"github.com/sluice-rl/sluice/stages/sampler/observation"
	"github.com/sluice-rl/sluice/stages/sampler/rollout"
	"github.com/sluice-rl/sluice/stages/sampler/toolcall"
)

// Reference is one recorded batch: the fields of a line of rollouts.jsonl that a
// rollout is made from. What grading and packing add stands in other fields.
type Reference struct {
	Seed         int64                 `json:"seed"`
	Questions    []ReferenceQuestion   `json:"questions"`
	Config       ReferenceConfig       `json:"config"`
	Trajectories []ReferenceTrajectory `json:"trajectories"`
}

// ReferenceQuestion is one slot's problem.
type ReferenceQuestion struct {
	Question string `json:"question"`
	Answer   string `json:"answer"`
}

// ReferenceConfig is the batch's budgets; a code call budget of 0 occurs.
type ReferenceConfig struct {
	GroupSize             uint32 `json:"group_size"`
	MaxCodeCalls          uint32 `json:"max_code_calls"`
	MaxAssistantTurns     uint32 `json:"max_assistant_turns"`
	MaxTrajectoryTokens   uint32 `json:"max_trajectory_tokens"`
	MaxAssistantTokens    uint32 `json:"max_assistant_tokens"`
	MaxToolResponseTokens uint32 `json:"max_tool_response_tokens"`
}

// ReferenceTrajectory is one recorded trajectory.
type ReferenceTrajectory struct {
	Slot         uint32               `json:"slot"`
	SampleIndex  uint32               `json:"sample_index"`
	Turns        []ReferenceTurn      `json:"turns"`
	CodeCalls    uint32               `json:"code_calls"`
	FinalText    string               `json:"final_text"`
	Executions   []ReferenceExecution `json:"executions"`
	Observations []string             `json:"observations"`
}

// ReferenceTurn is one recorded turn.
type ReferenceTurn struct {
	Prompt     string    `json:"prompt"`
	Completion string    `json:"completion"`
	Logprobs   []float32 `json:"logprobs"`
	Text       string    `json:"text"`
}

// ReferenceExecution is one recorded run; its streams are cut already.
type ReferenceExecution struct {
	Code       string `json:"code"`
	Stdout     string `json:"stdout"`
	Stderr     string `json:"stderr"`
	ReturnCode *int32 `json:"returncode"`
	TimedOut   bool   `json:"timed_out"`
}

const (
	referenceSystemPrompt = "SYSTEM PROMPT"
	// referenceTimeout is the limit that recorded time-outs speak of.
	referenceTimeout = 30 * time.Second
)

// Replay drives one recorded trajectory through package rollout.
func (b Reference) Replay(recorded ReferenceTrajectory) (*sluicev1.Trajectory, error) {
	defuser, err := observation.NewDefuser(observation.Qwen())
	if err != nil {
		return nil, err
	}
	now := time.Unix(0, 0)
	prompt := b.prompt(recorded.Slot)
	r := rollout.Start(
		rollout.Config{Protocol: toolcall.Qwen{}, Defuser: defuser, Glue: Glue(), Stage: "replay"},
		prompt, recorded.SampleIndex, uint64(recorded.SampleIndex)+1,
		Prompt(rollout.Conversation(prompt, referenceSystemPrompt)), now)

	var s Script
	for _, turn := range recorded.Turns {
		s.Completions = append(s.Completions, Completion{Raw: turn.Completion, Logprobs: turn.Logprobs})
	}
	for _, e := range recorded.Executions {
		s.Executions = append(s.Executions, e.message())
	}
	if err := s.Play(r, now); err != nil {
		return r.Trajectory(), err
	}
	return r.Trajectory(), nil
}

func (b Reference) prompt(slot uint32) *sluicev1.Prompt {
	q := b.Questions[slot]
	return &sluicev1.Prompt{
		Group:     &sluicev1.GroupPlace{RunId: "replay", Step: 1, Slot: slot},
		Problem:   &sluicev1.Problem{QuestionId: fmt.Sprintf("q%d", slot), Question: q.Question, Answer: q.Answer},
		GroupSize: b.Config.GroupSize, GroupsInStep: uint32(len(b.Questions)), Mode: sluicev1.Mode_MODE_TRAIN,
		Budgets: &sluicev1.Budgets{
			CodeCalls: b.Config.MaxCodeCalls, Turns: b.Config.MaxAssistantTurns, TrajectoryTokens: b.Config.MaxTrajectoryTokens,
			TurnTokens: b.Config.MaxAssistantTokens, ObservationTokens: b.Config.MaxToolResponseTokens,
			ExecutionTimeoutMs: uint32(referenceTimeout.Milliseconds()),
		},
		Sampling:    &sluicev1.SamplingParameters{Temperature: 1, TopP: 1},
		ToolEnabled: true, ToolProtocol: toolcall.QwenName,
	}
}

func (e ReferenceExecution) message() *sluicev1.Execution {
	m := &sluicev1.Execution{Stdout: e.Stdout, Stderr: e.Stderr, TimeoutMs: uint32(referenceTimeout.Milliseconds())}
	switch {
	case e.TimedOut:
		m.Outcome = sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_TIMEOUT
	case e.ReturnCode != nil && *e.ReturnCode == 0:
		m.Outcome = sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_OK
	default:
		m.Outcome = sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_ERROR
		if e.ReturnCode != nil {
			m.ExitCode = *e.ReturnCode
		}
	}
	return m
}

// Disagreement says in what a replayed trajectory differs from the recorded one, ""
// if in nothing: each turn's prompt, text and program, the observations, the count of
// code calls and the final text.
func (recorded ReferenceTrajectory) Disagreement(got *sluicev1.Trajectory) string {
	if n, m := len(got.GetTurns()), len(recorded.Turns); n != m {
		return fmt.Sprintf("%d turns, want %d", n, m)
	}
	sofar := Text(tokens.ReadIDs(got.GetPromptTokens()))
	var observations []string
	var programs []string
	for i, turn := range got.GetTurns() {
		want := recorded.Turns[i]
		if sofar != want.Prompt {
			return fmt.Sprintf("prompt of turn %d is %q, want %q", i, sofar, want.Prompt)
		}
		if turn.GetText() != want.Text {
			return fmt.Sprintf("text of turn %d is %q, want %q", i, turn.GetText(), want.Text)
		}
		if turn.GetExecution() != nil {
			programs = append(programs, turn.GetCode())
		}
		if tokens.Count(turn.GetGlueTokens()) > 0 {
			observations = append(observations, turn.GetObservation())
		}
		sofar += Text(tokens.ReadIDs(turn.GetTokens())) + Text(tokens.ReadIDs(turn.GetGlueTokens()))
	}
	if len(programs) != len(recorded.Executions) {
		return fmt.Sprintf("%d executions, want %d", len(programs), len(recorded.Executions))
	}
	for i, e := range recorded.Executions {
		if programs[i] != e.Code {
			return fmt.Sprintf("program %d is %q, want %q", i, programs[i], e.Code)
		}
	}
	if fmt.Sprintf("%q", observations) != fmt.Sprintf("%q", recorded.Observations) {
		return fmt.Sprintf("observations are %q, want %q", observations, recorded.Observations)
	}
	if got.GetCodeCalls() != recorded.CodeCalls {
		return fmt.Sprintf("%d code calls, want %d", got.GetCodeCalls(), recorded.CodeCalls)
	}
	if got.GetFinalText() != recorded.FinalText {
		return fmt.Sprintf("final text is %q, want %q", got.GetFinalText(), recorded.FinalText)
	}
	return ""
}
