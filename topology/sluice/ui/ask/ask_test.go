package ask_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	chschema "github.com/sluice-rl/sluice/schemas/clickhouse"
	"github.com/sluice-rl/sluice/schemas/clickhouse/clickhousetest"
	"github.com/sluice-rl/sluice/topology/sluice/ui/ask"
	"github.com/sluice-rl/sluice/topology/sluice/ui/uitest"
)

// values are the parameters of a question: name, value, name, value …
func values(pairs ...string) map[string][]string {
	all := map[string][]string{}
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i]] = append(all[pairs[i]], pairs[i+1])
	}
	return all
}

// column picks columns of a table's rows, in words.
func column(t ask.Table, names ...string) []string {
	out := []string{}
	for _, row := range t.Rows {
		var parts []string
		for _, name := range names {
			for i, c := range t.Columns {
				if c.Name == name {
					parts = append(parts, fmt.Sprint(row[i]))
				}
			}
		}
		out = append(out, strings.Join(parts, " "))
	}
	return out
}

func TestOnTheEngine(t *testing.T) {
	rows := uitest.Start(t)
	a := rows.Asker(t)
	t.Run("questions", func(t *testing.T) { testQuestions(t, a) })
	t.Run("curves are the views'", func(t *testing.T) { testCurves(t, rows, a) })
	t.Run("pages of trajectories", func(t *testing.T) { testPaging(t, a) })
	t.Run("values are never SQL", func(t *testing.T) { testValues(t, a) })
	t.Run("statements", func(t *testing.T) { testStatements(t, a) })
	t.Run("only the pages' own user runs statements", func(t *testing.T) { testOwn(t, rows) })
	t.Run("plain values", func(t *testing.T) { testPlain(t, a) })
}

func testQuestions(t *testing.T, a *ask.Asker) {
	one := []string{"run", uitest.Run, "incarnation", "0", "step", "1", "slot", "0", "sample", "1", "copy", "102"}
	with := func(more ...string) []string { return append(append([]string{}, one...), more...) }
	run := []string{"run", uitest.Run}
	filter := func(more ...string) []string { return append(append([]string{}, run...), more...) }
	for _, c := range []struct {
		name    string
		values  []string
		columns string
		want    []string
	}{
		{"runs", nil, "run_id mode trajectories last_step rewards", []string{"hand train 9 2 [-0.5 1]", "hand eval 1 2 [1]"}},
		{"run_steps", run, "step trajectories graded reward_mean correct_rate rollout_ms training_ms", []string{"1 4 4 -0.5 0.25 4000 1000", "2 4 3 1 1 4000 1000"}},
		{"run_trainer", run, "step entropy", []string{"1 0.3", "2 0.15"}},
		{"run_mismatch", run, "step mismatch_abs_max", []string{"2 0.5"}},
		{"run_eval", run, "step n correct_rate", []string{"2 1 1"}},
		{"run_work", run, "executions turns", []string{"6 13"}},
		{"trajectories", run, "step slot sample_index copy", []string{"2 0 0 201", "2 0 1 202", "2 1 0 211", "2 1 0 219", "2 1 1 212", "2 7 0 291", "1 0 0 101", "1 0 1 102", "1 1 0 111", "1 1 1 112"}},
		{"trajectories", filter("from", "2", "to", "2", "correct", "1", "mode", "train"), "copy", []string{"201", "202", "211"}},
		{"trajectories", filter("correct", "0"), "copy", []string{"219", "101", "111", "112"}},
		{"trajectories", filter("graded", "0"), "copy", []string{"212"}},
		{"trajectories", filter("exception", "NameError"), "copy", []string{"211", "102"}},
		{"trajectories", filter("outcome", "timeout"), "copy", []string{"112"}},
		{"trajectories", filter("end", "turn_budget"), "copy", []string{"112"}},
		{"trajectories", filter("calls_from", "2"), "copy", []string{"102"}},
		{"trajectories", filter("calls_to", "0", "mode", "train", "reward_to", "-0.5"), "copy", []string{"219", "101", "111"}},
		{"trajectories", filter("reward_from", "0.5", "question", "q2"), "copy", []string{"211"}},
		{"trajectories", filter("text", "ANSWER OF 10"), "copy", []string{"101", "102"}},
		{"trajectories", filter("version", "0"), "copy", []string{"101", "102", "111", "112"}},
		{"facets", run, "filter value trajectories", nil},
		{"trajectory", one, "copy reward verdict score_names score_rewards source_topic", []string{"102 1 equal [outcome brief] [1 0.5] scored"}},
		{"turns", one, "turn kind outcome exception code", []string{"0 tool error NameError print(x1)", "1 tool ok  print(7)", "2 answer   "}},
		{"turns", with("from", "1", "limit", "1"), "turn", []string{"1"}},
		{"text", with("turn", "0", "field", "code", "from", "6", "length", "2"), "piece", []string{"x1"}},
		{"tokens", with("turn", "0"), "tokens logprobs glue", []string{"[11 12 13] [-0.01 -1 -4] [21]"}},
		{"siblings", one[:8], "copy fate advantage", []string{"101 used -1", "102 used 1"}},
		{"siblings", []string{"run", uitest.Run, "incarnation", "0", "step", "2", "slot", "1"}, "copy fate advantage", []string{"211 used 0.5", "219  <nil>", "212 ungraded 0"}},
		{"group", one[:8], "closing graded policy_version_after batched_at", []string{"used 2 1 2026-05-01T12:00:18.000000Z"}},
		{"trajectory_replays", []string{"run", uitest.Run, "incarnation", "0", "step", "2", "slot", "0", "sample", "1", "copy", "202"}, "replay_id reward correct", []string{"strict -1 false"}},
		{"annotations", []string{"run", uitest.Run, "incarnation", "0", "step", "2", "slot", "0", "sample", "0", "copy", "201"}, "policy_version logprobs entropy", []string{"1 [-0.02 -1 -4.5 -0.25] [0.5 1 2 0.25]"}},
		{"annotations", one, "policy_version", []string{}},
		{"groups", run, "step slot closing rewards", []string{"2 0 degenerate [1 1]", "2 1 used [1 <nil>]", "2 7 used []", "1 0 used [-1 1]", "1 1 degenerate [-1 -1]"}},
		{"groups", filter("closing", "degenerate", "a_incarnation", "0", "a_step", "2", "a_slot", "0"), "step slot", []string{"1 1"}},
		// q2 of step 2: 211 was right and 219, the second copy, was not.
		{"questions", run, "question_id attempts right_answers flips", []string{"q2 4 1 1", "q1 4 3 0"}},
		{"questions", filter("only", "always"), "question_id", []string{}},
		{"questions", filter("mode", "eval", "only", "always"), "question_id", []string{"q3"}},
		{"errors", run, "outcome exception shape failures trajectories first_step", []string{"error NameError NameError: name '…' is not defined 2 2 1", "timeout   1 1 1"}},
		{"dead_letters", run, "stage error_type source_offset", []string{"sampler newer_schema 1", "reward-scorer undecodable 2"}},
		{"dead_letters", nil, "stage", []string{"sampler", "reward-scorer"}},
		{"replays", nil, "replay_id run_id trajectories flips", []string{"strict hand 2 1"}},
		{"replay_changes", filter("replay", "strict"), "change trajectories", nil},
		{"replay_flips", filter("replay", "strict"), "change copy old_reward new_reward", []string{"now_wrong 202 1 -1", "read_otherwise 201 1 1"}},
		{"tables", nil, "table", nil},
	} {
		got, err := a.Named(t.Context(), c.name, values(c.values...))
		if err != nil {
			t.Errorf("%s %v: %v", c.name, c.values, err)
			continue
		}
		if c.want == nil {
			if len(got.Rows) == 0 {
				t.Errorf("%s %v: no rows", c.name, c.values)
			}
			continue
		}
		if d := cmp.Diff(c.want, column(got, strings.Fields(c.columns)...)); d != "" {
			t.Errorf("%s %v (-want +got)\n%s", c.name, c.values, d)
		}
	}
}

// The question run_steps is what the views step_summary and step_phases say, over rows with
// several incarnations, refills, late and second copies, open groups and evaluation.
func testCurves(t *testing.T, rows *uitest.Rows, a *ask.Asker) {
	for _, name := range []string{"hand.sql", "populations.sql"} {
		b, err := os.ReadFile(filepath.Join(clickhousetest.Root(t), "schemas", "clickhouse", "testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range chschema.Statements(string(b)) {
			rows.Insert(t, s)
		}
	}
	runs, err := a.Statement(t.Context(), "SELECT DISTINCT run_id FROM step_summary ORDER BY run_id")
	if err != nil || len(runs.Rows) < 3 {
		t.Fatalf("runs %v, %v; want three or more", runs.Rows, err)
	}
	for _, row := range runs.Rows {
		run := fmt.Sprint(row[0])
		got, err := a.Named(t.Context(), "run_steps", values("run", run))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, c := range got.Columns {
			if !strings.HasSuffix(c.Name, "_ms") || strings.HasPrefix(c.Name, "exec_") {
				names = append(names, "s."+c.Name)
			} else {
				names = append(names, "p."+c.Name)
			}
		}
		want, err := a.Statement(t.Context(), fmt.Sprintf("SELECT %s FROM (SELECT * FROM step_summary WHERE run_id = '%s') AS s LEFT JOIN (SELECT * FROM step_phases WHERE run_id = '%s') AS p ON p.incarnation = s.incarnation AND p.step = s.step ORDER BY s.step, s.incarnation DESC LIMIT 1 BY s.step SETTINGS join_use_nulls = 1",
			strings.Join(names, ", "), run, run))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want.Rows, got.Rows); d != "" || len(got.Rows) == 0 {
			t.Errorf("run %s, columns %v (-view +question)\n%s", run, names, d)
		}
	}
}

// Page after page, whatever their size, every trajectory comes once and in order.
func testPaging(t *testing.T, a *ask.Asker) {
	whole, err := a.Named(t.Context(), "trajectories", values("run", uitest.Run))
	if err != nil {
		t.Fatal(err)
	}
	want := column(whole, "incarnation", "step", "slot", "sample_index", "copy")
	for size := 1; size <= 4; size++ {
		var got []string
		asked := values("run", uitest.Run, "limit", fmt.Sprint(size))
		for range len(want) + 1 {
			page, err := a.Named(t.Context(), "trajectories", asked)
			if err != nil {
				t.Fatal(err)
			}
			places := column(page, "incarnation", "step", "slot", "sample_index", "copy")
			if len(places) == 0 {
				break
			}
			got = append(got, places...)
			last := strings.Fields(places[len(places)-1])
			for i, name := range []string{"a_incarnation", "a_step", "a_slot", "a_sample", "a_copy"} {
				asked[name] = []string{last[i]}
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("pages of %d (-want +got)\n%s", size, d)
		}
	}
}

func testValues(t *testing.T, a *ask.Asker) {
	for _, hostile := range []string{"' OR 1 = 1 --", `\' OR 1=1`, "\\", "a\tb\nc\x00d", "{x:String}", "'; DROP TABLE trajectories", uitest.Hostile[:200]} {
		for _, name := range []string{"run_steps", "trajectories", "questions", "errors"} {
			got, err := a.Named(t.Context(), name, values("run", hostile))
			if err != nil || len(got.Rows) != 0 {
				t.Errorf("%s of run %q: %d rows, %v; want none", name, hostile, len(got.Rows), err)
			}
		}
	}
	for _, c := range []struct {
		name   string
		values []string
		want   error
	}{
		{"no_such", nil, ask.ErrUnknown}, {"../runs", nil, ask.ErrUnknown}, {"run_steps", nil, ask.ErrUnknown},
		{"run_steps", []string{"run", "a", "run", "b"}, ask.ErrUnknown}, {"run_steps", []string{"run", "a", "sort", "b"}, ask.ErrUnknown},
		{"trajectories", []string{"run", "a", "from", "one"}, ask.ErrRefused},
	} {
		if _, err := a.Named(t.Context(), c.name, values(c.values...)); !errors.Is(err, c.want) {
			t.Errorf("%s %v: %v, want %v", c.name, c.values, err, c.want)
		}
	}
}

// What people write may read our database, and nothing else, and no longer than it may.
func testStatements(t *testing.T, a *ask.Asker) {
	for _, sql := range []string{"SELECT 1", "SELECT count() FROM trajectories;", "WITH 1 AS x SELECT x", "SELECT * FROM step_summary", "DESCRIBE TABLE turns", "EXPLAIN SELECT 1", "SELECT count() FROM turns WHERE stderr LIKE '%fil_%' OR text = 'a\\nprofiles'"} {
		if got, err := a.Statement(t.Context(), sql); err != nil || len(got.Rows) == 0 {
			t.Errorf("%s: %d rows, %v", sql, len(got.Rows), err)
		}
	}
	for _, sql := range []string{
		"SELECT * FROM file('/etc/passwd', 'LineAsString')", "SELECT * FROM url('http://127.0.0.1:1/', 'LineAsString')",
		"SELECT * FROM remote('127.0.0.1', 'sluice.trajectories')", "SELECT * FROM remoteSecure('127.0.0.1', 'system.one')", "SELECT * FROM cluster('default', 'system.one')",
		"SELECT * FROM s3('http://127.0.0.1:1/x', 'CSV', 'a String')", "SELECT * FROM executable('id', 'CSV', 'a String')", "SELECT * FROM mysql('127.0.0.1:1', 'a', 'b', 'c', 'd')",
		"SELECT * FROM postgresql('127.0.0.1:1', 'a', 'b', 'c', 'd')", "SELECT * FROM input('a String')", "SELECT * FROM merge('system', '.*')",
		"SELECT file('/etc/passwd')", "SELECT FILE('/etc/passwd')", "SELECT `file`('/etc/passwd')", "SELECT \"file\" ('/etc/passwd')", "SELECT /*x*/file/*y*/('/etc/passwd')", "SELECT * APPLY file FROM (SELECT '/etc/passwd' AS x)", "SELECT * APPLY(file) FROM (SELECT '/etc/passwd' AS x)",
		"SELECT arrayMap(file, ['/etc/passwd'])", "SELECT `\\x66ile`('/etc/passwd')", "SELECT \"fi\\x6ce\"('/etc/passwd')", "SELECT \u201cfi\\x6ce\u201d('/etc/passwd')", "SELECT arrayMap(`fil\\x65`, ['/etc/passwd'])", "SELECT {f:Identifier}('/etc/passwd') SETTINGS param_f = 'x'",
		"EXPLAIN SELECT file('/etc/passwd')", "WITH x AS (SELECT 1) SELECT aiGenerate('a', 'b')",
		"SELECT * FROM system.users", "SELECT * FROM system.query_log", "SELECT * FROM system.processes", "SELECT * FROM system.zookeeper",
		"INSERT INTO trajectories (step) VALUES (1)", "INSERT INTO FUNCTION file('/tmp/x', 'CSV') SELECT 1", "SELECT 1 INTO OUTFILE '/tmp/sluice-pages-test'",
		"DROP TABLE trajectories", "TRUNCATE TABLE trajectories", "ALTER TABLE trajectories DELETE WHERE 1", "OPTIMIZE TABLE trajectories", "CREATE TABLE x (n Int64) ENGINE = Memory", "CREATE TEMPORARY TABLE x (n Int64)",
		"CREATE VIEW x AS SELECT 1", "CREATE FUNCTION f AS (x) -> x", "CREATE DATABASE x", "CREATE USER x", "GRANT SELECT ON *.* TO pages", "SET readonly = 0", "KILL QUERY WHERE 1", "SYSTEM SHUTDOWN", "SYSTEM FLUSH LOGS",
		"SELECT 1 SETTINGS readonly = 0", "SELECT 1 SETTINGS max_execution_time = 0", "SELECT 1 SETTINGS max_execution_time = 600", "SELECT 1 SETTINGS max_memory_usage = 0", "SELECT 1 SETTINGS max_threads = 64",
		"SELECT groupArray(repeat('x', 1000000)) FROM numbers(1000000)",
		"SELECT 1; SELECT 2", "", "nonsense",
	} {
		if got, err := a.Statement(t.Context(), sql); !errors.Is(err, ask.ErrRefused) {
			t.Errorf("%s: %v, %v; want it refused", sql, got.Rows, err)
		}
	}
	got, err := a.Statement(t.Context(), "SELECT number FROM numbers(100000000)")
	if err != nil || len(got.Rows) != ask.SQL.Rows || !got.Cut {
		t.Errorf("many rows: %d of them, cut %v, %v; want %d and cut", len(got.Rows), got.Cut, err, ask.SQL.Rows)
	}
	got, err = a.Statement(t.Context(), "SELECT repeat('x', 1000000) FROM numbers(100)")
	if err != nil || len(got.Rows) > 10 || !got.Cut {
		t.Errorf("large rows: %d of them, cut %v, %v; want 9 or so and cut", len(got.Rows), got.Cut, err)
	}
}

func testOwn(t *testing.T, rows *uitest.Rows) {
	for _, c := range []struct{ user, password, why string }{
		{"writer", rows.WriterPassword, "may do more"},
		{"reader", rows.ReaderPassword, "may do more"},
	} {
		a := uitest.Ask(t, rows.As(c.user, c.password))
		if own, why := a.Own(t.Context()); own || !strings.Contains(why, c.why) {
			t.Errorf("%s: own %v, %q; want it said that it %s", c.user, own, why, c.why)
		}
		if got, err := a.Statement(t.Context(), "SELECT 1"); !errors.Is(err, ask.ErrRefused) {
			t.Errorf("a statement as %s: %v, %v; want it refused", c.user, got.Rows, err)
		}
		if got, err := a.Named(t.Context(), "runs", nil); err != nil || len(got.Rows) == 0 {
			t.Errorf("a question as %s: %v, %v", c.user, got.Rows, err)
		}
	}
	if own, why := rows.Asker(t).Own(t.Context()); !own {
		t.Errorf("pages: not own: %s", why)
	}
	away := rows.As("pages", rows.PagesPassword)
	away.Addr = []string{"127.0.0.1:1"}
	if _, err := uitest.Ask(t, away).Named(t.Context(), "runs", nil); !errors.Is(err, ask.ErrAway) {
		t.Errorf("nobody there: %v, want ErrAway", err)
	}
}

func testPlain(t *testing.T, a *ask.Asker) {
	got, err := a.Statement(t.Context(), `SELECT 18446744073709551615 AS a, toInt64(-9007199254740993) AS b, 0/0 AS c, 1/0 AS d, NULL AS e, toFloat32(0.1) AS f, [1, NULL] AS g,
		map('k', 2) AS h, (1, 'x') AS i, toDateTime64('2026-05-01 12:00:00.5', 6, 'UTC') AS j, CAST(NULL AS Nullable(DateTime64(6, 'UTC'))) AS k, toDecimal64(1.5, 2) AS l, toUUID('00000000-0000-0000-0000-000000000001') AS m, true AS n, toUInt256(7) AS o`)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"18446744073709551615", "-9007199254740993", "<nil>", "<nil>", "<nil>", "0.1", "[1 <nil>]", "map[k:2]", "[1 x]", "2026-05-01T12:00:00.500000Z", "<nil>", "1.5", "00000000-0000-0000-0000-000000000001", "true", "7"}
	var said []string
	for _, v := range got.Rows[0] {
		said = append(said, fmt.Sprint(v))
	}
	if d := cmp.Diff(want, said); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}
