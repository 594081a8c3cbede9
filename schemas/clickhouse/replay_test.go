package clickhouse

import (
	"os"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/sluice-rl/sluice/schemas/clickhouse/clickhousetest"
)

// What follows from testdata/replay.sql beside testdata/hand.sql, worked out by hand.
var handReplayed = []struct {
	name, query string
	want        []string
}{
	{
		"each trajectory, old and new",
		"SELECT replay_id, copy, change, old_reward, new_reward, old_advantage, new_advantage, new_fate FROM replay_pairs ORDER BY replay_id, copy",
		[]string{
			`y | 11 | now_wrong | 1 | -1 | 1.25 | \N | `,
			`z | 11 | same | 1 | 1 | 1.25 | 0.25 | used`,
			`z | 12 | now_correct | -1 | 1 | -0.75 | 0.25 | used`,
			`z | 13 | reward | -1 | 0 | -0.75 | -0.5 | used`,
			`z | 14 | same | \N | \N | 0 | 0 | ungraded`,
			`z | 19 | now_ungraded | 1 | \N | \N | \N | `,
			`z | 21 | reward | -1 | 0 | 0 | 0.5 | used`,
			`z | 22 | read_otherwise | -1 | -1 | 0 | -0.5 | used`,
			`z | 31 | now_wrong | 1 | -1 | 0 | 0 | short_group`,
			`z | 99 | no_original | \N | 1 | \N | \N | `,
		},
	},
	{
		// qa, same: 11 and 14, of which one is graded.
		"rewards and verdicts by question and family",
		"SELECT question_id, change, trajectories, old_graded_count, new_graded_count, old_reward_mean, new_reward_mean, old_correct_rate, new_correct_rate, new_undecided FROM replay_changes WHERE replay_id = 'z' ORDER BY question_id, change",
		[]string{
			`qa | now_correct | 1 | 1 | 1 | -1 | 1 | 0 | 1 | 0`,
			`qa | now_ungraded | 1 | 1 | 0 | 1 | \N | 1 | \N | 0`,
			`qa | reward | 1 | 1 | 1 | -1 | 0 | 0 | 0 | 1`,
			`qa | same | 2 | 1 | 1 | 1 | 1 | 1 | 1 | 0`,
			`qb | read_otherwise | 1 | 1 | 1 | -1 | -1 | 0 | 0 | 0`,
			`qb | reward | 1 | 1 | 1 | -1 | 0 | 0 | 0 | 0`,
			`qc | now_wrong | 1 | 1 | 1 | 1 | -1 | 1 | 0 | 0`,
			`qz | no_original | 1 | 0 | 1 | \N | 1 | \N | 1 | 0`,
		},
	},
	{
		// qa, same: (1.25+0)/2, (0.25+0)/2, (1+0)/2.
		"advantages by question and family",
		"SELECT question_id, change, compared, old_advantage_abs, new_advantage_abs, advantage_shift, advantage_flips FROM replay_changes WHERE replay_id = 'z' ORDER BY question_id, change",
		[]string{
			`qa | now_correct | 1 | 0.75 | 0.25 | 1 | 1`,
			`qa | now_ungraded | 0 | \N | \N | \N | 0`,
			`qa | reward | 1 | 0.75 | 0.5 | 0.25 | 0`,
			`qa | same | 2 | 0.625 | 0.125 | 0.5 | 0`,
			`qb | read_otherwise | 1 | 0 | 0.5 | 0.5 | 0`,
			`qb | reward | 1 | 0 | 0.5 | 0.5 | 0`,
			`qc | now_wrong | 1 | 0 | 0 | 0 | 0`,
			`qz | no_original | 0 | \N | \N | \N | 0`,
		},
	},
	{
		"flips",
		"SELECT replay_id, copy, change, old_reward, new_reward, new_verdict FROM replay_flips ORDER BY replay_id, copy",
		[]string{
			`y | 11 | now_wrong | 1 | -1 | different`,
			`z | 12 | now_correct | -1 | 1 | equal`,
			`z | 19 | now_ungraded | 1 | \N | `,
			`z | 31 | now_wrong | 1 | -1 | different`,
		},
	},
}

// A replay stands beside the original: its own views give the numbers worked out by
// hand, and the original's views give theirs as if there were no replay.
func TestReplaysStandBesideTheOriginal(t *testing.T) {
	s := clickhousetest.Start(t)
	if err := Migrate(t.Context(), s.Options(clickhouse.Native, ""), "replayed", quiet); err != nil {
		t.Fatal(err)
	}
	conn := s.Open(t, clickhouse.Native, "replayed")
	insertHand(t, conn)
	b, err := os.ReadFile("testdata/replay.sql")
	if err != nil {
		t.Fatal(err)
	}
	// Twice: a row that stands twice counts once.
	for range 2 {
		for _, statement := range Statements(string(b)) {
			if err := conn.Exec(t.Context(), statement); err != nil {
				t.Fatalf("%.80s: %v", statement, err)
			}
		}
	}
	for _, c := range append(handReplayed, handWorked...) {
		if diff := cmp.Diff(c.want, table(t, conn, c.query)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
