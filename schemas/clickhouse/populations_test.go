package clickhouse

import (
	"os"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/sluice-rl/sluice/schemas/clickhouse/clickhousetest"
)

// What follows from testdata/populations.sql, worked out by hand.
var populations = []struct {
	name, query string
	want        []string
}{
	{
		"a place counts once",
		"SELECT incarnation, step, sample_index, copy, mode, fate, counted FROM trajectory_fates ORDER BY copy",
		[]string{
			"0 | 1 | 0 | 1 | train | trained | true",
			"0 | 1 | 1 | 2 | train | ungraded | false",
			"0 | 1 | 1 | 3 | train | trained | true",
			"0 | 1 | 0 | 4 | train | ungraded | false",
			"0 | 1 | 2 | 5 | train | late | false",
			"1 | 1 | 0 | 11 | train | trained | true",
			"0 | 1 | 0 | 21 | eval | evaluated | true",
			"0 | 2 | 0 | 31 | train | ungraded | true",
		},
	},
	{
		"training and evaluation are two rows",
		"SELECT mode, steps, incarnations, trajectories, graded, ungraded, trained, duplicates_dropped, late, second_copies, missing, correct_rate FROM run_summary ORDER BY mode",
		[]string{
			"eval | 0 | 1 | 1 | 1 | 0 | 0 | 0 | 0 | 0 | 0 | 1",
			// Places: 1/0/0, 1/0/1, 2/0/0 and the remade 1/0/0; right 1 of 3 graded.
			"train | 2 | 2 | 4 | 3 | 1 | 3 | 0 | 1 | 3 | 1 | 0.3333333333333333",
		},
	},
	{
		"a remade step is another row, and no version is NULL",
		"SELECT incarnation, step, trajectories, graded, ungraded, duplicates, correct_rate, policy_version_min, policy_version_max FROM step_summary ORDER BY step, incarnation",
		[]string{
			"0 | 1 | 2 | 2 | 0 | 3 | 0 | 3 | 3",
			"1 | 1 | 1 | 1 | 0 | 0 | 1 | 3 | 3",
			"0 | 2 | 1 | 0 | 1 | 0 | \\N | \\N | \\N",
		},
	},
	{
		// First failed 2, both retried, one had a later success, none was right; the late
		// one, which guessed right, is in no figure. Calls 4 of 5 turns with a call.
		"self-correction by its parts",
		"SELECT first_failed, retried, mended, corrected, self_correction_rate, mended_rate, retry_correct_rate, code_calls, tool_call_turns, valid_tool_call_rate, tool_call_share_wellformed, executions, exec_ok_rate, exec_latency_ms FROM step_summary WHERE step = 1 AND incarnation = 0",
		[]string{"2 | 2 | 1 | 0 | 0 | 0.5 | 0 | 4 | 5 | 0.8 | 1 | 4 | 0.25 | 2.5"},
	},
	{
		"version 3 before and after the roll-back are two policies",
		"SELECT incarnation, policy_version, trajectories, correct_rate, code_length_mean FROM version_summary ORDER BY incarnation",
		[]string{"0 | 3 | 2 | 0 | 2", "1 | 3 | 1 | 1 | 1"},
	},
	{
		"errors too",
		"SELECT incarnation, policy_version, outcome, exception, executions, rate FROM tool_errors ORDER BY incarnation",
		[]string{"0 | 3 | error | NameError | 1 | 1", "1 | 3 | ok |  | 1 | 1"},
	},
	{
		"no closing waited for a late copy",
		"SELECT copy, counted, scoring_ms, grouping_ms, closing_ms, batching_ms FROM trajectory_phases WHERE mode = 'train' AND step = 1 ORDER BY copy",
		[]string{
			"1 | true | 1000 | 0 | 4000 | 1000",
			"2 | false | 1000 | \\N | \\N | \\N",
			"3 | true | 1000 | 0 | 1000 | 1000",
			"4 | false | 1000 | \\N | \\N | \\N",
			"5 | false | 1000 | \\N | \\N | \\N",
			"11 | true | 1000 | 0 | 1000 | 1000",
		},
	},
	{
		"nor did a step",
		"SELECT incarnation, step, rollout_ms, grouping_ms FROM step_phases WHERE step = 1 ORDER BY incarnation",
		[]string{"0 | 1 | 7000 | 3000", "1 | 1 | 4000 | 3000"},
	},
}

func TestPopulations(t *testing.T) {
	s := clickhousetest.Start(t)
	if err := Migrate(t.Context(), s.Options(clickhouse.Native, ""), "populations", quiet); err != nil {
		t.Fatal(err)
	}
	conn := s.Open(t, clickhouse.Native, "populations")
	b, err := os.ReadFile("testdata/populations.sql")
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
	for _, c := range populations {
		if diff := cmp.Diff(c.want, table(t, conn, c.query)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
