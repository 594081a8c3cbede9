package clickhouse

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/go-cmp/cmp"

	"github.com/sluice-rl/sluice/schemas/clickhouse/clickhousetest"
)

// table reads a query as text, one line per row, columns parted by " | ".
func table(t *testing.T, conn driver.Conn, query string) []string {
	t.Helper()
	// formatRow renders every type the same way over both protocols.
	rows, err := conn.Query(t.Context(), "SELECT formatRowNoNewline('CustomSeparated', *) FROM ("+query+") SETTINGS format_custom_field_delimiter = ' | ', format_custom_row_after_delimiter = '', format_custom_escaping_rule = 'Raw', output_format_decimal_trailing_zeros = 0, output_format_tsv_crlf_end_of_line = 0")
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		out = append(out, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return out
}

func insertHand(t *testing.T, conn driver.Conn) {
	t.Helper()
	b, err := os.ReadFile("testdata/hand.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range Statements(string(b)) {
		if err := conn.Exec(t.Context(), s); err != nil {
			t.Fatalf("%.80s: %v", strings.TrimSpace(s), err)
		}
	}
}

// What follows from testdata/hand.sql. Every number was worked out by hand from the
// table at its top and the comments of the views.
var handWorked = []struct {
	name, query string
	want        []string
}{
	{
		"every trajectory has its fate",
		"SELECT step, slot, sample_index, copy, fate, fate_detail, advantage, counted FROM trajectory_fates ORDER BY copy",
		[]string{
			"1 | 0 | 0 | 11 | trained |  | 1.25 | true",
			"1 | 0 | 1 | 12 | trained |  | -0.75 | true",
			"1 | 0 | 2 | 13 | too_long | 9000 tokens | -0.75 | true",
			"1 | 0 | 3 | 14 | ungraded |  | 0 | true",
			"1 | 0 | 0 | 19 | duplicate |  | 0 | false",
			"1 | 1 | 0 | 21 | degenerate |  | 0 | true",
			"1 | 1 | 1 | 22 | degenerate |  | 0 | true",
			"1 | 2 | 0 | 31 | short_group |  | 0 | true",
			"2 | 0 | 0 | 41 | degenerate |  | 0 | true",
			"2 | 0 | 1 | 42 | pending |  | 0 | true",
		},
	},
	{
		// Counted 7, graded 6: 11 12 13 21 22 31.
		"shares and rewards of a step",
		"SELECT step, closed, trajectories, graded, ungraded, duplicates, round(graded_share, 4), round(reward_mean, 4), reward_mean_trained, round(correct_rate, 4), round(valid_box_rate, 4) FROM step_summary ORDER BY step",
		[]string{
			// 6/7; (1-1-1-1-1+1)/6; (1-1)/2; 2/6; boxes of 11 12 22 31: 4/6.
			"1 | true | 7 | 6 | 1 | 1 | 0.8571 | -0.3333 | 0 | 0.3333 | 0.6667",
			"2 | true | 2 | 2 | 0 | 0 | 1 | 1 | \\N | 1 | 1",
		},
	},
	{
		"tool use of a step",
		"SELECT step, valid_tool_call_rate, code_call_rate, round(code_calls_mean, 4), round(turns_mean, 4), self_correction_rate, executions, exec_ok_rate, exec_error_rate, exec_timeout_rate, exec_latency_ms, exec_latency_p99_ms FROM step_summary ORDER BY step",
		[]string{
			// Calls 2+1+1=4 of tool-call turns 2+1+1+1=5; callers 11 12 22: 3/6; 4/6;
			// turns 3+2+1+1+2+1=10 of 6; failed first 11 12, corrected 11: 1/2;
			// executions ok 2, error 1, timeout 1 of 4; (10+30+100+20)/4.
			"1 | 0.8 | 0.5 | 0.6667 | 1.6667 | 0.5 | 4 | 0.5 | 0.25 | 0.25 | 40 | 100",
			"2 | \\N | 0 | 0 | 1 | \\N | 0 | \\N | \\N | \\N | \\N | \\N",
		},
	},
	{
		"batches of a step",
		"SELECT step, groups_used, groups_degenerate, groups_dropped, degenerate_group_rate, round(trajectory_tokens_mean, 4), micro_batches, loss_tokens, padded_tokens, update_skipped, policy_version_min, policy_version_max, policy_version_after FROM step_summary ORDER BY step",
		[]string{
			// 1 degenerate of 1 used + 1 degenerate; (100+80+60+50+70+40)/6.
			"1 | 1 | 1 | 1 | 0.5 | 66.6667 | 1 | 50 | 200 | false | 1 | 1 | 2",
			"2 | 0 | 0 | 0 | \\N | 40 | 0 | 0 | 0 | true | 2 | 2 | \\N",
		},
	},
	{
		"the run",
		"SELECT run_id, steps, trajectories, graded, code_calls, executions, duplicates_dropped, late, missing, trained, degenerate, ungraded, short_group, too_long, pending, dead_letters, first_at, last_at FROM run_summary",
		[]string{"r | 2 | 9 | 8 | 4 | 4 | 1 | 0 | 1 | 2 | 3 | 1 | 1 | 1 | 1 | 1 | 2026-11-01 12:00:00.000000 | 2026-11-01 12:00:25.000000"},
	},
	{
		"all-graded and trained-on reward, success of graded and graded share, per version",
		"SELECT policy_version, trajectories, graded, round(graded_share, 4), round(correct_rate, 4), round(reward_mean, 4), reward_mean_trained, round(trained_share, 4), retry_rate, self_fix_rate, protocol_fault_share, code_length_mean FROM version_summary ORDER BY policy_version",
		[]string{
			// Code of calls x, xyz, x, xxx and the duplicate's xx: (1+3+1+3+2)/5.
			"1 | 7 | 6 | 0.8571 | 0.3333 | -0.3333 | 0 | 0.3333 | 0.5 | 0.5 | 0 | 2",
			"2 | 2 | 2 | 1 | 1 | 1 | \\N | 0 | \\N | \\N | 0 | \\N",
		},
	},
	{
		"why tool calls go wrong",
		"SELECT policy_version, outcome, exception, executions, version_executions, rate FROM tool_errors ORDER BY outcome",
		[]string{"1 | error | NameError | 1 | 5 | 0.2", "1 | ok |  | 3 | 5 | 0.6", "1 | timeout |  | 1 | 5 | 0.2"},
	},
	{
		// Copy 12 had two attempts before its own whose end nobody knows, 19 had one.
		"programs that may have run more than once",
		"SELECT policy_version, executions, repeated, unknown_runs, repeated_rate FROM repeated_executions",
		[]string{"1 | 5 | 2 | 3 | 0.4"},
	},
	{
		// d is ln 2, 0 (11, its later row) and -ln 2 (12); k3 of them 1 - ln 2, 0 and
		// ln 2 - 0.5.
		"how far sampler and trainer are from each other, by trajectory",
		"SELECT copy, tokens, round(mismatch_mean, 4), round(mismatch_abs_mean, 4), round(mismatch_abs_max, 4), round(kl, 4), round(ratio_max, 4), outside_low, outside_high, entropy_mean FROM mismatch_by_trajectory ORDER BY copy",
		[]string{"11 | 2 | 0.3466 | 0.3466 | 0.6931 | 0.1534 | 2 | 0 | 1 | 1", "12 | 1 | -0.6931 | 0.6931 | 0.6931 | 0.1931 | 0.5 | 1 | 0 | \\N"},
	},
	{
		"how far sampler and trainer are from each other, by step",
		"SELECT step, data, tokens, round(mismatch_mean, 4) + 0, round(mismatch_abs_mean, 4), round(mismatch_abs_max, 4), round(kl, 4), round(ratio_max, 4), round(outside_low_share, 4), round(outside_high_share, 4), entropy_mean FROM mismatch_by_step",
		[]string{"1 | 2 | 3 | 0 | 0.4621 | 0.6931 | 0.1667 | 2 | 0.3333 | 0.3333 | 1"},
	},
	{
		"where the time of a trajectory went",
		"SELECT waited_ms, sampling_ms, executing_ms, exec_waiting_ms, moving_ms, scoring_ms, grouping_ms, closing_ms, batching_ms FROM trajectory_phases WHERE copy = 11",
		[]string{"1000 | 6000 | 40 | 10 | 1950 | 1000 | 1000 | 1000 | 3000"},
	},
	{
		"where the time of a step went",
		"SELECT step, rollout_ms, grouping_ms, training_ms, sampler_idle_ms, trainer_idle_ms FROM step_phases ORDER BY step",
		[]string{
			// First sample :01, last end :10, batch :15, answer :18, next sample :20.
			"1 | 9000 | 5000 | 3000 | 10000 | \\N",
			"2 | 3000 | 2000 | \\N | \\N | 7000",
		},
	},
	{
		"a trajectory turn by turn",
		"SELECT turn, kind, code, outcome, policy_tokens, glue_tokens_count FROM transcripts WHERE copy = 11 ORDER BY turn",
		[]string{"0 | tool | x | error | 3 | 2", "1 | tool | xyz | ok | 1 | 1", "2 | answer |  |  | 1 | 0"},
	},
	{
		"what must agree agrees",
		"SELECT run_id, graded_minus_n, trained_minus_data, loss_tokens_difference FROM member_checks",
		[]string{"r | 0 | 0 | 0"},
	},
}

func TestViewsGiveTheNumbersWorkedOutByHand(t *testing.T) {
	s := clickhousetest.Start(t)
	for name, protocol := range map[string]clickhouse.Protocol{"native": clickhouse.Native, "http": clickhouse.HTTP} {
		t.Run(name, func(t *testing.T) {
			db := "hand_" + name
			if err := Migrate(t.Context(), s.Options(protocol, ""), db, quiet); err != nil {
				t.Fatal(err)
			}
			conn := s.Open(t, protocol, db)
			// Twice: a row that stands twice counts once.
			insertHand(t, conn)
			insertHand(t, conn)
			for _, c := range handWorked {
				if diff := cmp.Diff(c.want, table(t, conn, c.query)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", c.name, diff)
				}
			}
		})
	}
}

// Thirty per cent of infrastructure errors, half of the rest right: the views say 50 %
// and 70 %, and never one number for both.
func TestInfrastructureErrorsAreInNoMean(t *testing.T) {
	s := clickhousetest.Start(t)
	if err := Migrate(t.Context(), s.Options(clickhouse.Native, ""), "masked", quiet); err != nil {
		t.Fatal(err)
	}
	conn := s.Open(t, clickhouse.Native, "masked")
	err := conn.Exec(context.Background(), `INSERT INTO trajectories (source_topic, event_time, run_id, step, slot, sample_index, copy, mode, policy_tokens, policy_version_max, graded, correct, reward)
		SELECT 'scored', '2026-11-01 12:00:00', 'r', 1, 0, number, number + 1, 'train', 5, 3, number >= 30, number >= 65, multiIf(number < 30, 0, number >= 65, 1, -1) FROM numbers(100)`)
	if err != nil {
		t.Fatal(err)
	}
	for _, view := range []string{"step_summary", "version_summary", "run_summary"} {
		got := table(t, conn, fmt.Sprintf("SELECT graded_share, correct_rate, reward_mean FROM %s", view))
		if diff := cmp.Diff([]string{"0.7 | 0.5 | 0"}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", view, diff)
		}
	}
}
