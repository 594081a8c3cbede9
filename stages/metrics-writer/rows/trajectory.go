package rows

import (
	"strings"

	"github.com/sluice-rl/sluice/schemas"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
)

// toolCallMark is what counts as a try to call the tool, well-formed or not.
const toolCallMark = "<tool_call>"

func ofScored(m *sluicev1.Scored, source Source) []Row {
	source = source.at(m.GetScoredAt())
	t := m.GetTrajectory()
	p := t.GetPrompt()
	row := &Trajectory{
		Source: source, Member: memberOf(t), Attempt: p.GetAttempt(),
		QuestionID: p.GetProblem().GetQuestionId(), DataSource: p.GetProblem().GetDataSource(), Mode: schemas.EnumText(p.GetMode()),
		Question: p.GetProblem().GetQuestion(), ReferenceAnswer: p.GetProblem().GetAnswer(),
		GroupSize: p.GetGroupSize(), GroupsInStep: p.GetGroupsInStep(), ToolEnabled: p.GetToolEnabled(), Epoch: p.GetEpoch(),
		Temperature: p.GetSampling().GetTemperature(), TopP: p.GetSampling().GetTopP(),
		EndReason: schemas.EnumText(t.GetEndReason()), EndDetail: t.GetEndDetail(), EndedBy: t.GetEndedBy(), FinalText: t.GetFinalText(),
		Turns: uint32(len(t.GetTurns())), CodeCalls: t.GetCodeCalls(), Executions: t.GetExecutions(),
		FailedAttempts: t.GetFailedAttempts(), LogprobsMode: t.GetLogprobsMode(), Dialect: t.GetDialect(),
		PromptTokens: tokens.ReadIDs(t.GetPromptTokens()),
		Graded:       m.GetGraded(), UngradedReason: m.GetUngradedReason(), Reward: m.GetReward(), Correct: m.GetCorrect(),
		ValidFormat: m.GetValidFormat(), Answer: m.GetAnswer(),
		Verdict: schemas.EnumText(m.GetVerdict().GetOutcome()), VerdictMethod: m.GetVerdict().GetMethod(), VerdictReason: m.GetVerdict().GetReason(),
		GoldRead: m.GetVerdict().GetGoldRead(), PredRead: m.GetVerdict().GetPredRead(),
		FedAt: when(p.GetFedAt()), StartedAt: when(t.GetStartedAt()), EndedAt: when(t.GetEndedAt()), ScoredAt: when(m.GetScoredAt()),
	}
	for i, s := range m.GetScores() {
		if i == 0 {
			row.Scorer, row.ScorerVersion = s.GetName(), s.GetVersion()
		}
		row.ScoreNames = append(row.ScoreNames, s.GetName())
		row.ScoreVersions = append(row.ScoreVersions, s.GetVersion())
		row.ScoreRewards = append(row.ScoreRewards, s.GetReward())
		row.ScoreErrors = append(row.ScoreErrors, s.GetError())
	}
	out := []Row{row}
	var versions span
	var execution uint32
	for i, turn := range t.GetTurns() {
		tr := ofTurn(m, turn, source)
		tr.Turn = uint32(i)
		if tr.Outcome != "" {
			execution++
			tr.Execution = execution
			row.ExecutionOutcomes = append(row.ExecutionOutcomes, tr.Outcome)
			row.ExecutionWallMS = append(row.ExecutionWallMS, float32(tr.WallMS))
			if execution == 1 {
				row.FirstOutcome = tr.Outcome
			}
		}
		versions.add(turn.GetVersions())
		row.PolicyTokens += uint32(tokens.Count(turn.GetTokens()))
		row.GlueTokens += uint32(tokens.Count(turn.GetGlueTokens()))
		row.Aborts += turn.GetAborts()
		if tr.HasToolCall {
			row.ToolCallTurns++
		}
		if turn.GetKind() == sluicev1.TurnKind_TURN_KIND_TOOL {
			row.ToolTurns++
		}
		if tr.Truncated {
			row.TruncatedTurns++
		}
		out = append(out, tr)
	}
	row.PolicyVersionMin, row.PolicyVersionMax = versions.min, versions.max
	row.TrajectoryTokens = uint32(len(row.PromptTokens)) + row.PolicyTokens + row.GlueTokens
	return out
}

func ofTurn(m *sluicev1.Scored, turn *sluicev1.Turn, source Source) *Turn {
	t := m.GetTrajectory()
	var versions span
	versions.add(turn.GetVersions())
	row := &Turn{
		Source: source, Member: memberOf(t), Mode: schemas.EnumText(t.GetPrompt().GetMode()), Graded: m.GetGraded(), Correct: m.GetCorrect(),
		Kind: schemas.EnumText(turn.GetKind()), InvalidReason: turn.GetInvalidReason(), Truncated: turn.GetTruncated(),
		HasToolCall: strings.Contains(turn.GetText(), toolCallMark), Aborts: turn.GetAborts(),
		Attempts: turn.GetAttempts(), VersionSource: schemas.EnumText(turn.GetVersionSource()),
		PolicyVersionMin: versions.min, PolicyVersionMax: versions.max,
		Text: turn.GetText(), Code: turn.GetCode(), Observation: turn.GetObservation(),
		Tokens: tokens.ReadIDs(turn.GetTokens()), Logprobs: tokens.ReadFloats(turn.GetLogprobs()), GlueTokens: tokens.ReadIDs(turn.GetGlueTokens()),
		SampleStartedAt: when(turn.GetSampleStartedAt()), SampleEndedAt: when(turn.GetSampleEndedAt()),
	}
	e := turn.GetExecution()
	if e.GetOutcome() == 0 {
		return row
	}
	row.CallID, row.Outcome, row.ExitCode, row.Exception = e.GetCallId(), schemas.EnumText(e.GetOutcome()), e.GetExitCode(), e.GetException()
	row.Stdout, row.Stderr = e.GetStdout(), e.GetStderr()
	row.StdoutTruncated, row.StderrTruncated = e.GetStdoutTruncated(), e.GetStderrTruncated()
	row.StdoutBytes, row.StderrBytes = e.GetStdoutBytes(), e.GetStderrBytes()
	row.TimeoutMS, row.WallMS, row.CPUMS, row.QueueWaitMS = e.GetTimeoutMs(), e.GetWallMs(), e.GetCpuMs(), e.GetQueueWaitMs()
	row.PeakMemoryBytes, row.Warm, row.Image, row.SandboxID = e.GetPeakMemoryBytes(), e.GetWarm(), e.GetImage(), e.GetSandboxId()
	row.Protections, row.Delivery, row.UnknownRuns = e.GetProtections(), e.GetDelivery(), e.GetUnknownRuns()
	row.QueuedAt, row.ExecutionStartedAt, row.ExecutionEndedAt = when(e.GetQueuedAt()), when(e.GetStartedAt()), when(e.GetEndedAt())
	return row
}

// span is the least and the greatest of policy versions.
type span struct {
	min, max uint32
	any      bool
}

func (s *span) add(versions []*sluicev1.VersionSpan) {
	oldest, newest, ok := tokens.VersionRange(versions)
	if !ok {
		return
	}
	if !s.any {
		s.min, s.max, s.any = oldest, newest, true
	}
	s.min, s.max = min(s.min, oldest), max(s.max, newest)
}
