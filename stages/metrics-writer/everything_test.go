package main

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
)

// hostile is what a model or its program may write.
const hostile = "'); DROP TABLE trajectories; -- \\' \" ` \x1b[31m {p:String} ?\u0000\u202e"

// batchOf is a step's messages of every kind, and the rows that they become.
type batchOf struct {
	outputs []kafka.Output
	rows    map[string]uint64
}

// everything is one step of a group of two: one trajectory with a failed and a mended
// call, one that answers at once.
func everything(step uint64) batchOf {
	at := func(ms int) *timestamppb.Timestamp {
		return timestamppb.New(time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(step)*time.Hour*24 + time.Duration(ms)*time.Millisecond))
	}
	prompt := &sluicev1.Prompt{
		Group:    &sluicev1.GroupPlace{RunId: "run", Step: step},
		Problem:  &sluicev1.Problem{QuestionId: fmt.Sprint("q", step), Question: hostile, Answer: "2", DataSource: "test"},
		Budgets:  &sluicev1.Budgets{CodeCalls: 4, Turns: 6, TrajectoryTokens: 8192, TurnTokens: 1024, ObservationTokens: 512, ExecutionTimeoutMs: 30000},
		Sampling: &sluicev1.SamplingParameters{Temperature: 1, TopP: 1}, GroupSize: 2, GroupsInStep: 1,
		Mode: sluicev1.Mode_MODE_TRAIN, ToolEnabled: true, ToolProtocol: "qwen", FedAt: at(0),
	}
	turn := func(kind sluicev1.TurnKind, text string, e *sluicev1.Execution) *sluicev1.Turn {
		t := &sluicev1.Turn{Tokens: tokens.IDs(1, 2), Logprobs: tokens.Floats(-0.5, -0.25), Versions: tokens.Versions(uint32(step), uint32(step)), Text: text, Kind: kind, SampleStartedAt: at(10), SampleEndedAt: at(20)}
		if e != nil {
			t.Code, t.Execution, t.Observation, t.GlueTokens = hostile, e, e.GetStderr()+e.GetStdout(), tokens.IDs(7, 8, 9)
		}
		return t
	}
	long := &sluicev1.Trajectory{
		Prompt: prompt, SampleIndex: 0, Copy: 100 + step, PromptTokens: tokens.IDs(5, 6),
		Turns: []*sluicev1.Turn{
			turn(sluicev1.TurnKind_TURN_KIND_TOOL, "<tool_call>"+hostile, &sluicev1.Execution{CallId: "c0", Outcome: sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_ERROR, Exception: "NameError", ExitCode: 1, Stderr: hostile, WallMs: 10}),
			turn(sluicev1.TurnKind_TURN_KIND_TOOL, "<tool_call>", &sluicev1.Execution{CallId: "c1", Outcome: sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_OK, Stdout: "2\n", WallMs: 20, Protections: []string{"gvisor"}}),
			turn(sluicev1.TurnKind_TURN_KIND_ANSWER, `\boxed{2}`, nil),
		},
		EndReason: sluicev1.EndReason_END_REASON_ANSWER, FinalText: `\boxed{2}`, CodeCalls: 2, Executions: 2, StartedAt: at(10), EndedAt: at(40),
	}
	short := &sluicev1.Trajectory{
		Prompt: prompt, SampleIndex: 1, Copy: 200 + step, PromptTokens: tokens.IDs(5, 6),
		Turns:     []*sluicev1.Turn{turn(sluicev1.TurnKind_TURN_KIND_ANSWER, `\boxed{3}`, nil)},
		EndReason: sluicev1.EndReason_END_REASON_ANSWER, FinalText: `\boxed{3}`, StartedAt: at(10), EndedAt: at(20),
	}
	score := func(t *sluicev1.Trajectory, reward float64) *sluicev1.Scored {
		return &sluicev1.Scored{Trajectory: t, Graded: true, Reward: reward, Correct: reward > 0, ValidFormat: true,
			Scores: []*sluicev1.Score{{Name: "outcome", Version: "1", Reward: reward}}, ScoredAt: at(50)}
	}
	right, wrong := score(long, 1), score(short, -1)
	datum := func(t *sluicev1.Trajectory, advantage float32) *sluicev1.Datum {
		return &sluicev1.Datum{SampleIndex: t.GetSampleIndex(), Copy: t.GetCopy(), InputTokens: tokens.IDs(5, 6, 1), TargetTokens: tokens.IDs(6, 1, 2),
			BehaviourLogprobs: tokens.Floats(0, -0.5, -0.25), Advantages: tokens.Floats(0, advantage, advantage), LossMask: []byte{0, 1, 1}}
	}
	member := func(t *sluicev1.Trajectory) *sluicev1.MemberBatched {
		return &sluicev1.MemberBatched{SampleIndex: t.GetSampleIndex(), Copy: t.GetCopy(), Fate: sluicev1.BatchFate_BATCH_FATE_TRAINED, LossTokens: 2}
	}
	return batchOf{
		outputs: []kafka.Output{
			{Topic: "scored", Body: right}, {Topic: "scored", Body: wrong},
			{Topic: "grouped", Body: &sluicev1.GroupMember{Scored: right, TakenAt: at(60)}},
			{Topic: "grouped", Body: &sluicev1.GroupMember{Scored: wrong, TakenAt: at(61)}},
			{Topic: "grouped", Body: &sluicev1.GroupClosed{
				Group: prompt.GetGroup(), QuestionId: prompt.GetProblem().GetQuestionId(), Mode: prompt.GetMode(), GroupSize: 2, GroupsInStep: 1,
				Closing: sluicev1.Closing_CLOSING_USED, Reason: "complete", Graded: 2, OpenedAt: at(0), ClosedAt: at(61),
				Members: []*sluicev1.MemberClosing{
					{SampleIndex: 0, Copy: long.GetCopy(), Fate: sluicev1.MemberFate_MEMBER_FATE_USED, Reward: 1, Advantage: 1},
					{SampleIndex: 1, Copy: short.GetCopy(), Fate: sluicev1.MemberFate_MEMBER_FATE_USED, Reward: -1, Advantage: -1},
				}}},
			{Topic: "ppo-batches", Body: &sluicev1.StepBatch{RunId: "run", Step: step, MicroBatches: 1, N: 2, ClipLow: 0.8, ClipHigh: 1.28, TokenReduction: sluicev1.TokenReduction_TOKEN_REDUCTION_SUM,
				GroupsUsed: 1, Members: []*sluicev1.MemberBatched{member(long), member(short)}, Data: 2, LossTokens: 4, PaddedTokens: 6, BatchedAt: at(70)}},
			{Topic: "ppo-batches", Body: &sluicev1.MicroBatch{RunId: "run", Step: step, Data: []*sluicev1.Datum{datum(long, 1), datum(short, -1)}, PaddedTokens: 6, Scale: 1, ClipLow: 0.8, ClipHigh: 1.28, TokenReduction: sluicev1.TokenReduction_TOKEN_REDUCTION_SUM}},
			{Topic: "trainer-reports", Body: &sluicev1.TrainerReport{RunId: "run", Step: step, PolicyVersion: uint32(step + 1), Loss: 0.1, Extra: map[string]float64{"kl": 0.01}, ReportedAt: at(80)}},
			{Topic: "trainer-annotations", Body: &sluicev1.TrainerAnnotation{RunId: "run", Step: step, Copy: long.GetCopy(), PolicyVersion: uint32(step), Logprobs: tokens.Floats(-0.5, -0.3), BehaviourLogprobs: tokens.Floats(-0.5, -0.25), Entropy: tokens.Floats(0.7, 0.6), AnnotatedAt: at(79)}},
			{Topic: "policy-updates", Body: &sluicev1.PolicyUpdate{RunId: "run", Step: step, PolicyVersion: uint32(step + 1), Trained: true, PublishedAt: at(81)}},
			{Topic: "dead-letters", Body: &sluicev1.DeadLetter{Stage: "sampler", SourceTopic: "prompts", SourceOffset: int64(step), Key: []byte{0xff}, Value: []byte(hostile), ErrorType: "undecodable", Error: hostile,
				Headers: []*sluicev1.RecordHeader{{Key: "h", Value: []byte{0xff}}}, FailedAt: at(5)}},
		},
		rows: map[string]uint64{"trajectories": 2, "turns": 4, "group_members": 2, "groups": 1, "group_fates": 2, "step_batches": 1, "batch_members": 2,
			"micro_batches": 1, "trainer_reports": 1, "trainer_annotations": 1, "policy_updates": 1, "dead_letters": 1},
	}
}
