package rows

import (
	"google.golang.org/protobuf/proto"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// OfReplay gives the rows of a message of a replay. They go into tables of their own:
// the original's are not touched. Messages that a replay does not write give none.
func OfReplay(id string, m proto.Message, source Source) []Row {
	var out []Row
	switch m := m.(type) {
	case *sluicev1.Scored:
		t := ofScored(m, source)[0].(*Trajectory)
		return []Row{&ReplayScore{
			ReplayID: id, Source: t.Source, Member: t.Member, QuestionID: t.QuestionID, DataSource: t.DataSource, Mode: t.Mode,
			Graded: t.Graded, UngradedReason: t.UngradedReason, Reward: t.Reward, Correct: t.Correct, ValidFormat: t.ValidFormat,
			Answer: t.Answer, Verdict: t.Verdict, VerdictMethod: t.VerdictMethod, VerdictReason: t.VerdictReason,
			GoldRead: t.GoldRead, PredRead: t.PredRead, Scorer: t.Scorer, ScorerVersion: t.ScorerVersion,
			ScoreNames: t.ScoreNames, ScoreVersions: t.ScoreVersions, ScoreRewards: t.ScoreRewards, ScoreErrors: t.ScoreErrors,
		}}
	case *sluicev1.GroupClosed, *sluicev1.StepBatch:
		for _, r := range Of(m, source) {
			switch r := r.(type) {
			case *Group:
				out = append(out, &ReplayGroup{id, *r})
			case *GroupFate:
				out = append(out, &ReplayGroupFate{id, *r})
			case *StepBatch:
				out = append(out, &ReplayStepBatch{id, *r})
			case *BatchMember:
				out = append(out, &ReplayBatchMember{id, *r})
			}
		}
	}
	return out
}

// ReplayScore is a row of replay_scores.
type ReplayScore struct {
	ReplayID string `ch:"replay_id"`
	Source
	Member
	QuestionID     string    `ch:"question_id"`
	DataSource     string    `ch:"data_source"`
	Mode           string    `ch:"mode"`
	Graded         bool      `ch:"graded"`
	UngradedReason string    `ch:"ungraded_reason"`
	Reward         float64   `ch:"reward"`
	Correct        bool      `ch:"correct"`
	ValidFormat    bool      `ch:"valid_format"`
	Answer         string    `ch:"answer"`
	Verdict        string    `ch:"verdict"`
	VerdictMethod  string    `ch:"verdict_method"`
	VerdictReason  string    `ch:"verdict_reason"`
	GoldRead       string    `ch:"gold_read"`
	PredRead       string    `ch:"pred_read"`
	Scorer         string    `ch:"scorer"`
	ScorerVersion  string    `ch:"scorer_version"`
	ScoreNames     []string  `ch:"score_names"`
	ScoreVersions  []string  `ch:"score_versions"`
	ScoreRewards   []float64 `ch:"score_rewards"`
	ScoreErrors    []string  `ch:"score_errors"`
}

// Table is replay_scores.
func (*ReplayScore) Table() string { return "replay_scores" }

// ReplayGroup is a row of replay_groups.
type ReplayGroup struct {
	ReplayID string `ch:"replay_id"`
	Group
}

// Table is replay_groups.
func (*ReplayGroup) Table() string { return "replay_groups" }

// ReplayGroupFate is a row of replay_group_fates.
type ReplayGroupFate struct {
	ReplayID string `ch:"replay_id"`
	GroupFate
}

// Table is replay_group_fates.
func (*ReplayGroupFate) Table() string { return "replay_group_fates" }

// ReplayStepBatch is a row of replay_step_batches.
type ReplayStepBatch struct {
	ReplayID string `ch:"replay_id"`
	StepBatch
}

// Table is replay_step_batches.
func (*ReplayStepBatch) Table() string { return "replay_step_batches" }

// ReplayBatchMember is a row of replay_batch_members.
type ReplayBatchMember struct {
	ReplayID string `ch:"replay_id"`
	BatchMember
}

// Table is replay_batch_members.
func (*ReplayBatchMember) Table() string { return "replay_batch_members" }
