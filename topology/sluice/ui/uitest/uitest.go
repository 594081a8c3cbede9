// Package uitest starts what tests of the pages need: a real ClickHouse with rows made by
// hand, some of them hostile, and a broker that holds one of their records.
package uitest

import (
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/types/known/timestamppb"

	chschema "github.com/sluice-rl/sluice/schemas/clickhouse"
	"github.com/sluice-rl/sluice/schemas/clickhouse/clickhousetest"
	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/custody"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
	"github.com/sluice-rl/sluice/topology"
	"github.com/sluice-rl/sluice/topology/apply"
	"github.com/sluice-rl/sluice/topology/embedded/broker"
	"github.com/sluice-rl/sluice/topology/sluice/ui/ask"
	"github.com/sluice-rl/sluice/topology/sluice/ui/live"
)

// Database is where the rows are.
const Database = "sluice"

// Run is the run of hand.sql: its comment says what is in it.
const Run = "hand"

//go:embed hand.sql
var hand string

// Rows is a ClickHouse with the tables, and the rows of hand.sql.
type Rows struct {
	*clickhousetest.Server
	Writer driver.Conn
}

// Start starts a ClickHouse that ends with the test.
func Start(t testing.TB) *Rows {
	t.Helper()
	s := clickhousetest.Start(t)
	// By HTTP, as everything that writes to the embedded engine.
	if err := chschema.Migrate(context.Background(), s.Options(clickhouse.HTTP, ""), Database, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	r := &Rows{s, s.Open(t, clickhouse.HTTP, Database)}
	for _, statement := range chschema.Statements(hand) {
		r.Insert(t, statement)
	}
	return r
}

// Insert runs a statement that writes; values are its parameters.
func (r *Rows) Insert(t testing.TB, statement string, values ...any) {
	t.Helper()
	if err := r.Writer.Exec(context.Background(), statement, values...); err != nil {
		t.Fatalf("%.300s: %v", statement, err)
	}
}

// Options connect as the user of the pages.
func (r *Rows) Options() *clickhouse.Options {
	return r.As("pages", r.PagesPassword)
}

// As connects as another user.
func (r *Rows) As(user, password string) *clickhouse.Options {
	return &clickhouse.Options{Protocol: clickhouse.HTTP, Addr: []string{r.HTTP}, Auth: clickhouse.Auth{Database: Database, Username: user, Password: password}}
}

// Asker asks as the user of the pages.
func (r *Rows) Asker(t testing.TB) *ask.Asker {
	t.Helper()
	return Ask(t, r.Options())
}

// Ask asks with options; the connection ends with the test.
func Ask(t testing.TB, o *clickhouse.Options) *ask.Asker {
	t.Helper()
	a, err := ask.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a
}

// Hostile is text that a page must show and never obey: markup, a script, escape codes
// of terminals, characters that turn text round, NULs, and a long line.
var Hostile = "</script><script>window.pwned = 1</script><img src=x onerror='window.pwned = 2'>" +
	"<a href='javascript:window.pwned=3'>click</a> \x1b[31mred\x1b[0m \x1b]8;;http://evil.example\x07link\x1b]8;;\x07 " +
	"\u202eesrever\u202c \u2066isolate\u2069 zero\u200bwidth nul\x00byte ${window.pwned=4} {{7*7}} \xff\xfe " + strings.Repeat("Z͑̔", 40)

// InsertHostile adds a run whose id, question, texts, program, outputs, exception and dead
// letter are Hostile, with a line of some megabytes on stdout.
func (r *Rows) InsertHostile(t testing.TB, megabytes int) (run string) {
	t.Helper()
	run = `"><script>window.pwned=5</script>`
	x := clickhouse.Named("x", strings.ToValidUTF8(Hostile, "\ufffd"))
	id := clickhouse.Named("run", run)
	r.Insert(t, `INSERT INTO trajectories (run_id, step, slot, sample_index, copy, mode, question_id, question, reference_answer, end_reason, end_detail, final_text, turns, code_calls, executions, tool_turns, tool_call_turns, execution_outcomes, execution_wall_ms, first_outcome, policy_tokens, group_size, groups_in_step, graded, reward, answer, verdict, verdict_reason, gold_read, pred_read, score_names, score_versions, score_rewards, score_errors, data_source, dialect, event_time, source_topic)
		SELECT {run:String}, 1, 0, number, 900 + number, 'train', {x:String}, {x:String}, {x:String}, {x:String}, {x:String}, {x:String}, 2, 1, 1, 1, 1, ['error'], [5], 'error', 3, 2, 1, 1, number, {x:String}, 'different', {x:String}, {x:String}, {x:String}, [{x:String}], [{x:String}], [1], [{x:String}], {x:String}, {x:String}, now64(6), {x:String}
		FROM numbers(2)`, x, id)
	r.Insert(t, `INSERT INTO turns (run_id, step, slot, sample_index, copy, turn, kind, mode, graded, text, code, observation, tokens, logprobs, outcome, exit_code, exception, stdout, stderr, event_time)
		SELECT {run:String}, 1, 0, s.number, 900 + s.number, t.number, if(t.number = 0, 'tool', {x:String}), 'train', 1, {x:String}, if(t.number = 0, {x:String}, ''), {x:String}, [1, 2, 3], [-0.5, -1, -9], if(t.number = 0, 'error', ''), 1, {x:String},
			if(t.number = 0, arrayStringConcat(arrayMap(i -> repeat('A', 1000000), range({mb:UInt32}))), ''), {x:String}, now64(6)
		FROM numbers(2) AS s CROSS JOIN numbers(2) AS t`, x, id, clickhouse.Named("mb", fmt.Sprint(megabytes)))
	r.Insert(t, `INSERT INTO groups (run_id, step, slot, question_id, mode, group_size, groups_in_step, closing, reason, detail, graded, reward_mean, opened_at, closed_at, event_time)
		VALUES ({run:String}, 1, 0, {x:String}, 'train', 2, 1, 'used', {x:String}, {x:String}, 2, 0.5, now64(6), now64(6), now64(6))`, x, id)
	r.Insert(t, `INSERT INTO group_fates (run_id, step, slot, sample_index, copy, mode, fate, reward, advantage, event_time)
		SELECT {run:String}, 1, 0, number, 900 + number, 'train', 'used', number, number - 0.5, now64(6) FROM numbers(2)`, id)
	r.Insert(t, `INSERT INTO dead_letters (stage, failed_topic, failed_offset, error_type, error, key, value, run_id, question_id, failed_at, event_time)
		VALUES ({x:String}, {x:String}, 7, {x:String}, {x:String}, {x:String}, {x:String}, {run:String}, {x:String}, now64(6), now64(6))`, x, id)
	r.Insert(t, `INSERT INTO replay_scores (replay_id, run_id, step, slot, sample_index, copy, question_id, mode, graded, reward, correct, answer, verdict, verdict_reason, event_time)
		VALUES ({x:String}, {run:String}, 1, 0, 0, 900, {x:String}, 'train', 1, 1, 1, {x:String}, 'equal', {x:String}, now64(6))`, x, id)
	return run
}

// Broker is a broker with the topics.
type Broker struct {
	watch *live.Watch
}

// StartBroker starts a broker that ends with the test, with records from offset 0 on of
// partition 0 of topic scored.
func StartBroker(t testing.TB, records ...*sluicev1.Scored) *Broker {
	t.Helper()
	b, err := broker.Start(broker.Config{DataDir: t.TempDir(), MaxMessageBytes: 8 << 20}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	top, err := topology.Load("")
	if err != nil {
		t.Fatal(err)
	}
	connect := []kgo.Opt{kgo.SeedBrokers(b.Address())}
	cl, err := kgo.NewClient(append(connect, kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if _, err := apply.Apply(context.Background(), cl, top, apply.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, s := range records {
		rec, err := codec.Encode(s)
		if err != nil {
			t.Fatal(err)
		}
		r := &kgo.Record{Topic: "scored", Key: rec.Key, Value: rec.Value}
		for _, h := range rec.Headers {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
		}
		if err := cl.ProduceSync(context.Background(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	w, err := live.New(live.Config{Connect: connect, Topology: top})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return &Broker{watch: w}
}

// Watch looks at the broker.
func (b *Broker) Watch() *live.Watch { return b.watch }

// Scored is the record of the trajectory of hand.sql at step 2, slot 0, sample 0, copy
// 201, as the stages would have sealed it.
func Scored() *sluicev1.Scored {
	at := timestamppb.New(time.Date(2026, 5, 1, 12, 0, 21, 0, time.UTC))
	tr := &sluicev1.Trajectory{
		Prompt: &sluicev1.Prompt{
			Group:     &sluicev1.GroupPlace{RunId: Run, Step: 2, Slot: 0},
			Problem:   &sluicev1.Problem{QuestionId: "q1", Question: "What is question q1?", Answer: "7"},
			GroupSize: 2, GroupsInStep: 2, Mode: sluicev1.Mode_MODE_TRAIN, ToolEnabled: true, ToolProtocol: "qwen", FedAt: at,
			Budgets:  &sluicev1.Budgets{CodeCalls: 4, Turns: 6, TrajectoryTokens: 8192, TurnTokens: 1024, ObservationTokens: 512, ExecutionTimeoutMs: 30000},
			Sampling: &sluicev1.SamplingParameters{Temperature: 1, TopP: 1},
		},
		Copy: 201, PromptTokens: tokens.IDs(1, 2),
		Turns: []*sluicev1.Turn{
			{
				Tokens: tokens.IDs(11, 12, 13), Logprobs: tokens.Floats(-0.01, -1, -4), Versions: tokens.Versions(1, 1, 2),
				Text: "print", Kind: sluicev1.TurnKind_TURN_KIND_TOOL, Code: "print(7)",
				Execution:   &sluicev1.Execution{CallId: "c", Outcome: sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_OK, Stdout: "7\n"},
				Observation: "7\n", GlueTokens: tokens.IDs(21), SampleStartedAt: at, SampleEndedAt: at,
			},
			{Tokens: tokens.IDs(14), Logprobs: tokens.Floats(-0.5), Versions: tokens.Versions(2), Text: `\boxed{7}`, Kind: sluicev1.TurnKind_TURN_KIND_ANSWER},
		},
		EndReason: sluicev1.EndReason_END_REASON_ANSWER, FinalText: `\boxed{7}`, CodeCalls: 1, Executions: 1, EndedBy: "sampler", StartedAt: at, EndedAt: at,
	}
	custody.SealAll(tr)
	return &sluicev1.Scored{
		Trajectory: tr, Graded: true, Reward: 1, Correct: true, ValidFormat: true, Answer: "7",
		Verdict: &sluicev1.Verdict{Outcome: sluicev1.VerdictOutcome_VERDICT_OUTCOME_EQUAL, Method: "number"},
		Scores:  []*sluicev1.Score{{Name: "outcome", Version: "1", Reward: 1}}, ScoredAt: at,
	}
}

//go:embed many.sql
var many string

// InsertMany adds five runs, many-0 to many-4, of so many trajectories in all, for
// measuring.
func (r *Rows) InsertMany(t testing.TB, trajectories int) {
	t.Helper()
	for _, statement := range chschema.Statements(many) {
		r.Insert(t, statement, clickhouse.Named("steps", fmt.Sprint(max(1, trajectories/4000))))
	}
	for _, table := range []string{"trajectories", "turns", "groups", "group_fates", "group_members", "batch_members"} {
		r.Insert(t, "OPTIMIZE TABLE "+table)
	}
}

// InsertLong adds run long, of one trajectory of so many megabytes: turns of a megabyte of
// text each, without a line's end.
func (r *Rows) InsertLong(t testing.TB, megabytes int) {
	t.Helper()
	r.Insert(t, `INSERT INTO trajectories (run_id, step, slot, sample_index, copy, mode, question_id, question, reference_answer, end_reason, turns, policy_tokens, graded, reward, event_time)
		VALUES ('long', 1, 0, 0, 1, 'train', 'q', 'How long?', '7', 'answer', {turns:UInt32}, 1, 1, 1, '2026-05-01 12:00:00')`, clickhouse.Named("turns", fmt.Sprint(megabytes)))
	r.Insert(t, `INSERT INTO turns (run_id, step, copy, turn, kind, mode, text, tokens, logprobs, event_time)
		SELECT 'long', 1, 1, number, 'answer', 'train', arrayStringConcat(arrayMap(i -> hex(sipHash128(number, i)), range(31250))), [1], [-1], '2026-05-01 12:00:00' FROM numbers({turns:UInt32}) SETTINGS max_block_size = 8`, clickhouse.Named("turns", fmt.Sprint(megabytes)))
}
