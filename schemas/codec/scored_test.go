package codec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// A score put around a trajectory's bytes is the record that Encode would have made.
func TestEncodeScoredIsEncode(t *testing.T) {
	traj := &sluicev1.Trajectory{
		Prompt: &sluicev1.Prompt{
			Group: &sluicev1.GroupPlace{RunId: "run", Step: 2}, Problem: &sluicev1.Problem{QuestionId: "q"},
			GroupSize: 2, GroupsInStep: 1, Mode: sluicev1.Mode_MODE_TRAIN,
		},
		SampleIndex: 1, Copy: 9, PromptTokens: []uint32{1, 2}, EndReason: sluicev1.EndReason_END_REASON_ANSWER,
	}
	for name, s := range map[string]*sluicev1.Scored{
		"graded": {Trajectory: traj, Graded: true, Reward: -1, ValidFormat: true, Answer: "7", Scores: []*sluicev1.Score{{Name: "a", Version: "1", Reward: -1}},
			Verdict: &sluicev1.Verdict{Outcome: sluicev1.VerdictOutcome_VERDICT_OUTCOME_DIFFERENT}, ScoredAt: timestamppb.Now()},
		"ungraded": {Trajectory: traj, UngradedReason: "why"},
	} {
		want, err := Encode(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, from := range []string{"Scored", "Trajectory"} {
			value := want.Value
			if from == "Trajectory" {
				rec, err := Encode(traj)
				if err != nil {
					t.Fatal(err)
				}
				value = rec.Value
			}
			got, err := EncodeScored(s, TrajectoryBytes(from, value))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s from %s (-Encode +EncodeScored):\n%s", name, from, diff)
			}
		}
	}
	if _, err := EncodeScored(&sluicev1.Scored{Trajectory: traj, Graded: true}, nil); err == nil {
		t.Error("graded without scores was encoded")
	}
}

func TestTrajectoryBytesOfWhatHasNone(t *testing.T) {
	twice := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), []byte("a"))
	twice = append(twice, twice...)
	for name, value := range map[string][]byte{
		"empty": nil, "no trajectory": protowire.AppendVarint(protowire.AppendTag(nil, 2, protowire.VarintType), 1),
		"two of them": twice, "broken": {0xff}, "no message": protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 1),
	} {
		if b := TrajectoryBytes("Scored", value); b != nil {
			t.Errorf("%s: %q, want nil", name, b)
		}
	}
	if b := TrajectoryBytes("Prompt", []byte("x")); b != nil {
		t.Errorf("a Prompt: %q, want nil", b)
	}
}
