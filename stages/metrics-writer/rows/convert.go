package rows

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sluice-rl/sluice/schemas"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
)

// Of gives the rows of a message that lies at source, whose EventTime is the time of
// the record: it stands where the message says none. Messages of other topics give
// none.
func Of(m proto.Message, source Source) []Row {
	switch m := m.(type) {
	case *sluicev1.Scored:
		return ofScored(m, source)
	case *sluicev1.GroupMember:
		return []Row{ofGroupMember(m, source)}
	case *sluicev1.GroupClosed:
		return ofGroupClosed(m, source)
	case *sluicev1.StepBatch:
		return ofStepBatch(m, source)
	case *sluicev1.MicroBatch:
		return []Row{ofMicroBatch(m, source)}
	case *sluicev1.TrainerReport:
		return []Row{ofTrainerReport(m, source)}
	case *sluicev1.TrainerAnnotation:
		return []Row{ofTrainerAnnotation(m, source)}
	case *sluicev1.PolicyUpdate:
		return []Row{ofPolicyUpdate(m, source)}
	case *sluicev1.DeadLetter:
		return []Row{ofDeadLetter(m, source)}
	}
	return nil
}

// eventSkew bounds how far an event's own time may lie from its record's: a broken
// clock must not open table partitions all over the calendar.
const eventSkew = 366 * 24 * time.Hour

// The column's type holds these years only.
var (
	earliest = time.Date(1971, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2261, 1, 1, 0, 0, 0, 0, time.UTC)
)

// at sets the event time, unless it is missing or too far from the record's.
func (s Source) at(ts *timestamppb.Timestamp) Source {
	record := clamp(s.EventTime)
	s.EventTime = record
	if ts.IsValid() && ts.AsTime().Sub(record).Abs() < eventSkew {
		s.EventTime = clamp(ts.AsTime())
	}
	return s
}

func clamp(t time.Time) time.Time {
	switch t = t.UTC(); {
	case t.Before(earliest):
		return earliest
	case t.After(latest):
		return latest
	}
	return t
}

// when is a time as a column, nil where the message has none that makes sense.
func when(ts *timestamppb.Timestamp) *time.Time {
	if !ts.IsValid() || ts.AsTime().Unix() <= 0 {
		return nil
	}
	t := clamp(ts.AsTime())
	return &t
}

func groupStep(g *sluicev1.GroupPlace) Step {
	return Step{RunID: g.GetRunId(), Incarnation: g.GetIncarnation(), Step: g.GetStep()}
}

func memberOf(t *sluicev1.Trajectory) Member {
	g := t.GetPrompt().GetGroup()
	return Member{Step: groupStep(g), Slot: g.GetSlot(), SampleIndex: t.GetSampleIndex(), Copy: t.GetCopy()}
}

func ofGroupMember(m *sluicev1.GroupMember, source Source) *GroupMember {
	s := m.GetScored()
	p := s.GetTrajectory().GetPrompt()
	return &GroupMember{
		Source: source.at(m.GetTakenAt()), Member: memberOf(s.GetTrajectory()),
		Attempt: p.GetAttempt(), QuestionID: p.GetProblem().GetQuestionId(), Mode: schemas.EnumText(p.GetMode()),
		Graded: s.GetGraded(), Reward: s.GetReward(), TakenAt: when(m.GetTakenAt()),
	}
}

func ofGroupClosed(m *sluicev1.GroupClosed, source Source) []Row {
	source = source.at(m.GetClosedAt())
	step := groupStep(m.GetGroup())
	g := &Group{
		Source: source, Step: step, Slot: m.GetGroup().GetSlot(), Attempt: m.GetAttempt(),
		QuestionID: m.GetQuestionId(), DataSource: m.GetDataSource(), Mode: schemas.EnumText(m.GetMode()),
		GroupSize: m.GetGroupSize(), GroupsInStep: m.GetGroupsInStep(), Closing: schemas.EnumText(m.GetClosing()), Reason: m.GetReason(),
		Graded: m.GetGraded(), RewardMean: m.GetRewardMean(), OpenedAt: when(m.GetOpenedAt()), ClosedAt: when(m.GetClosedAt()), Detail: m.GetDetail(),
	}
	out := []Row{g}
	for _, f := range m.GetMembers() {
		if f.GetFate() == sluicev1.MemberFate_MEMBER_FATE_MISSING {
			g.Missing++
		}
		out = append(out, &GroupFate{
			Source: source, Mode: g.Mode, Fate: schemas.EnumText(f.GetFate()), Reward: f.GetReward(), Advantage: f.GetAdvantage(),
			Attempt: f.GetAttempt(), Refilled: f.GetRefilled(), EndReason: schemas.EnumText(f.GetEndReason()),
			Member: Member{Step: step, Slot: g.Slot, SampleIndex: f.GetSampleIndex(), Copy: f.GetCopy()},
		})
	}
	return out
}

func ofStepBatch(m *sluicev1.StepBatch, source Source) []Row {
	source = source.at(m.GetBatchedAt())
	step := Step{RunID: m.GetRunId(), Incarnation: m.GetIncarnation(), Step: m.GetStep()}
	out := []Row{&StepBatch{
		Source: source, Step: step, MicroBatches: m.GetMicroBatches(), N: m.GetN(),
		ClipLow: m.GetClipLow(), ClipHigh: m.GetClipHigh(), TokenReduction: schemas.EnumText(m.GetTokenReduction()),
		PolicyVersionMin: m.GetPolicyVersionMin(), PolicyVersionMax: m.GetPolicyVersionMax(),
		GroupsUsed: m.GetGroupsUsed(), GroupsDegenerate: m.GetGroupsDegenerate(), GroupsDropped: m.GetGroupsDropped(),
		Data: m.GetData(), LossTokens: m.GetLossTokens(), PaddedTokens: m.GetPaddedTokens(), BatchedAt: when(m.GetBatchedAt()),
		ProtocolFaults: m.GetProtocolFaults(), InfraErrors: m.GetInfraErrors(),
		Digest: hex.EncodeToString(m.GetDigest()), Correction: correction(m.GetCorrection()),
	}}
	for _, b := range m.GetMembers() {
		out = append(out, &BatchMember{
			Source: source, Fate: schemas.EnumText(b.GetFate()), Detail: b.GetDetail(),
			Member:     Member{Step: step, Slot: b.GetSlot(), SampleIndex: b.GetSampleIndex(), Copy: b.GetCopy()},
			MicroBatch: b.GetMicroBatch(), LossTokens: b.GetLossTokens(), Staleness: b.GetStaleness(),
		})
	}
	return out
}

func ofMicroBatch(m *sluicev1.MicroBatch, source Source) *MicroBatch {
	row := &MicroBatch{
		Source: source.at(nil), Step: Step{RunID: m.GetRunId(), Incarnation: m.GetIncarnation(), Step: m.GetStep()},
		MicroBatch: m.GetIndex(), Data: uint32(len(m.GetData())), PaddedTokens: m.GetPaddedTokens(), Scale: m.GetScale(),
	}
	for _, d := range m.GetData() {
		n := uint32(tokens.Count(d.GetInputTokens()))
		row.Tokens += uint64(n)
		row.Longest = max(row.Longest, n)
		row.LossTokens += uint64(bytes.Count(d.GetLossMask(), []byte{1}))
		row.Slots = append(row.Slots, d.GetSlot())
		row.SampleIndices = append(row.SampleIndices, d.GetSampleIndex())
		row.Lengths = append(row.Lengths, n)
	}
	return row
}

func ofTrainerReport(m *sluicev1.TrainerReport, source Source) *TrainerReport {
	return &TrainerReport{
		Source: source.at(m.GetReportedAt()), Step: Step{RunID: m.GetRunId(), Incarnation: m.GetIncarnation(), Step: m.GetStep()},
		PolicyVersion: m.GetPolicyVersion(), Skipped: m.GetSkipped(), Loss: m.GetLoss(),
		RatioMean: m.GetRatioMean(), RatioMax: m.GetRatioMax(),
		ClipFractionLow: m.GetClipFractionLow(), ClipFractionHigh: m.GetClipFractionHigh(),
		Entropy: m.GetEntropy(), GradientNorm: m.GetGradientNorm(), Data: m.GetData(), LossTokens: m.GetLossTokens(),
		DurationMS: m.GetDurationMs(), Extra: m.GetExtra(), ReportedAt: when(m.GetReportedAt()),
	}
}

func ofTrainerAnnotation(m *sluicev1.TrainerAnnotation, source Source) *TrainerAnnotation {
	return &TrainerAnnotation{
		Source:        source.at(m.GetAnnotatedAt()),
		Member:        Member{Step: Step{RunID: m.GetRunId(), Incarnation: m.GetIncarnation(), Step: m.GetStep()}, Slot: m.GetSlot(), SampleIndex: m.GetSampleIndex(), Copy: m.GetCopy()},
		PolicyVersion: m.GetPolicyVersion(), Logprobs: tokens.ReadFloats(m.GetLogprobs()), BehaviourLogprobs: tokens.ReadFloats(m.GetBehaviourLogprobs()),
		Entropy: tokens.ReadFloats(m.GetEntropy()), AnnotatedAt: when(m.GetAnnotatedAt()),
	}
}

// correction is a correction in words; empty: none.
func correction(c *sluicev1.Correction) string {
	if c == nil {
		return ""
	}
	by := "token"
	if c.GetBySequence() {
		by = "sequence"
	}
	return fmt.Sprintf("%s by %s, %g to %g", schemas.EnumText(c.GetKind()), by, c.GetLow(), c.GetHigh())
}

func ofPolicyUpdate(m *sluicev1.PolicyUpdate, source Source) *PolicyUpdate {
	return &PolicyUpdate{
		Source: source.at(m.GetPublishedAt()), Step: Step{RunID: m.GetRunId(), Incarnation: m.GetIncarnation(), Step: m.GetStep()},
		PolicyVersion: m.GetPolicyVersion(), Trained: m.GetTrained(), InferenceURL: m.GetInferenceUrl(), Model: m.GetModel(), ServerVersion: m.GetServerVersion(),
		PublishedAt: when(m.GetPublishedAt()),
	}
}

func ofDeadLetter(m *sluicev1.DeadLetter, source Source) *DeadLetter {
	o := m.GetOrigin()
	row := &DeadLetter{
		Source: source.at(m.GetFailedAt()), Stage: m.GetStage(),
		FailedTopic: m.GetSourceTopic(), FailedPartition: m.GetSourcePartition(), FailedOffset: m.GetSourceOffset(),
		ErrorType: m.GetErrorType(), Error: m.GetError(), DeliveryCount: m.GetDeliveryCount(),
		Key: string(m.GetKey()), Value: string(m.GetValue()),
		RunID: o.GetGroup().GetRunId(), Incarnation: o.GetGroup().GetIncarnation(), Step: o.GetGroup().GetStep(), Slot: o.GetGroup().GetSlot(),
		Copy: o.GetCopy(), QuestionID: o.GetQuestionId(), FailedAt: when(m.GetFailedAt()),
	}
	if o != nil && o.SampleIndex != nil {
		row.SampleIndex = o.SampleIndex
	}
	for _, h := range m.GetHeaders() {
		row.HeaderKeys = append(row.HeaderKeys, h.GetKey())
		row.HeaderValues = append(row.HeaderValues, string(h.GetValue()))
	}
	return row
}
