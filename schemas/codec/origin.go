package codec

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// Key is the record key of a message: the question id up to scoring, then the run id.
func Key(m proto.Message) string {
	switch m := m.(type) {
	case *sluicev1.Prompt:
		return m.GetProblem().GetQuestionId()
	case *sluicev1.CodeCall:
		return Key(m.GetTrajectory())
	case *sluicev1.CodeResult:
		return Key(m.GetTrajectory())
	case *sluicev1.Trajectory:
		return m.GetPrompt().GetProblem().GetQuestionId()
	case *sluicev1.Scored:
		return Key(m.GetTrajectory())
	case *sluicev1.GroupMember:
		return m.GetScored().GetTrajectory().GetPrompt().GetGroup().GetRunId()
	case *sluicev1.GroupClosed:
		return m.GetGroup().GetRunId()
	case *sluicev1.DeadLetter:
		return string(m.GetKey())
	case *sluicev1.StageStatus:
		return m.GetStage() + "/" + m.GetInstance()
	case *sluicev1.RunFed:
		return m.GetRunId() + "/fed"
	case *sluicev1.RunStop:
		return m.GetRunId() + "/stop"
	case *sluicev1.PolicyUpdate:
		return stepKey(m)
	case *sluicev1.CloseRequest:
		key := stepKey(m)
		if m.Slot != nil {
			key += fmt.Sprintf("/%d", m.GetSlot())
		}
		return key
	case interface{ GetRunId() string }:
		return m.GetRunId()
	}
	return ""
}

// stepKey names a step: "run.incarnation/step".
func stepKey(m interface {
	GetRunId() string
	GetIncarnation() uint32
	GetStep() uint64
}) string {
	return fmt.Sprintf("%s.%d/%d", m.GetRunId(), m.GetIncarnation(), m.GetStep())
}

// OriginOf is what a message's record says of itself, nil where it stands for no
// group (batches, updates, reports).
func OriginOf(m proto.Message) *sluicev1.Origin {
	switch m := m.(type) {
	case *sluicev1.Prompt:
		return promptOrigin(m)
	case *sluicev1.CodeCall:
		return OriginOf(m.GetTrajectory())
	case *sluicev1.CodeResult:
		return OriginOf(m.GetTrajectory())
	case *sluicev1.Trajectory:
		o := promptOrigin(m.GetPrompt())
		o.SampleIndex = proto.Uint32(m.GetSampleIndex())
		o.Copy = m.GetCopy()
		return o
	case *sluicev1.Scored:
		return OriginOf(m.GetTrajectory())
	case *sluicev1.GroupMember:
		return OriginOf(m.GetScored().GetTrajectory())
	case *sluicev1.GroupClosed:
		return &sluicev1.Origin{
			Group: m.GetGroup(), Attempt: m.GetAttempt(), QuestionId: m.GetQuestionId(), GroupSize: m.GetGroupSize(),
			GroupsInStep: m.GetGroupsInStep(), Mode: m.GetMode(), DataSource: m.GetDataSource(),
		}
	case *sluicev1.DeadLetter:
		return m.GetOrigin()
	}
	return nil
}

func promptOrigin(p *sluicev1.Prompt) *sluicev1.Origin {
	return &sluicev1.Origin{
		Group: p.GetGroup(), Attempt: p.GetAttempt(), QuestionId: p.GetProblem().GetQuestionId(), GroupSize: p.GetGroupSize(),
		GroupsInStep: p.GetGroupsInStep(), Mode: p.GetMode(), DataSource: p.GetProblem().GetDataSource(),
	}
}

// TrajectoryOf is the trajectory that a message is or holds, nil if there is none.
func TrajectoryOf(m proto.Message) *sluicev1.Trajectory {
	switch m := m.(type) {
	case *sluicev1.GroupMember:
		return m.GetScored().GetTrajectory()
	case *sluicev1.Trajectory:
		return m
	case interface{ GetTrajectory() *sluicev1.Trajectory }:
		return m.GetTrajectory()
	}
	return nil
}

// GivenUp builds the trajectories that end what a record stood for, where its value
// cannot be used: one for a record of one member, one per member for a record of a
// group. Each is an infra_error, so it is never graded, and its group can close.
// copies draws the copy of a member that has none yet.
func GivenUp(o *sluicev1.Origin, stage, detail string, copies func() uint64) []*sluicev1.Trajectory {
	p := &sluicev1.Prompt{
		Group: o.GetGroup(), Attempt: o.GetAttempt(), GroupSize: o.GetGroupSize(), GroupsInStep: o.GetGroupsInStep(), Mode: o.GetMode(),
		Problem: &sluicev1.Problem{QuestionId: o.GetQuestionId(), DataSource: o.GetDataSource()},
	}
	member := func(index uint32, drawn uint64) *sluicev1.Trajectory {
		for drawn == 0 {
			drawn = copies()
		}
		return &sluicev1.Trajectory{
			Prompt: p, SampleIndex: index, Copy: drawn,
			EndReason: sluicev1.EndReason_END_REASON_INFRA_ERROR, EndDetail: detail, EndedBy: stage,
		}
	}
	if o.SampleIndex != nil {
		return []*sluicev1.Trajectory{member(o.GetSampleIndex(), o.GetCopy())}
	}
	all := make([]*sluicev1.Trajectory, o.GetGroupSize())
	for i := range all {
		all[i] = member(uint32(i), 0)
	}
	return all
}
