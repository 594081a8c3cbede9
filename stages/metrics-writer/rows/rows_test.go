package rows

import (
	"log/slog"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	chschema "github.com/sluice-rl/sluice/schemas/clickhouse"
	"github.com/sluice-rl/sluice/schemas/clickhouse/clickhousetest"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
)

var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func source() Source { return Source{Topic: "scored", Partition: 3, Offset: 77, EventTime: noon} }

// Every row type is its table: same columns, same order, and the engine takes it.
func TestRowsAreTheTables(t *testing.T) {
	s := clickhousetest.Start(t)
	if err := chschema.Migrate(t.Context(), s.Options(clickhouse.HTTP, ""), "rows", slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	conn := s.Open(t, clickhouse.HTTP, "rows")
	var inDatabase []string
	if err := conn.QueryRow(t.Context(), "SELECT arraySort(groupArray(name)) FROM system.tables WHERE database = 'rows' AND engine LIKE '%MergeTree' AND name != 'schema_migrations'").Scan(&inDatabase); err != nil {
		t.Fatal(err)
	}
	if len(inDatabase) != len(Tables()) {
		t.Errorf("tables %v, rows for %d of them", inDatabase, len(Tables()))
	}
	for _, r := range Tables() {
		var columns []string
		if err := conn.QueryRow(t.Context(), "SELECT groupArray(name) FROM (SELECT name FROM system.columns WHERE database = 'rows' AND table = ? ORDER BY position)", r.Table()).Scan(&columns); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(columns, Columns(r)); diff != "" {
			t.Errorf("%s (-table +row):\n%s", r.Table(), diff)
			continue
		}
		batch, err := conn.PrepareBatch(t.Context(), "INSERT INTO "+r.Table()+" ("+strings.Join(columns, ", ")+")")
		if err != nil {
			t.Fatal(err)
		}
		reflect.ValueOf(r).Elem().FieldByName("Source").Set(reflect.ValueOf(source()))
		if err := batch.AppendStruct(r); err != nil {
			t.Errorf("%s: %v", r.Table(), err)
			continue
		}
		if err := batch.Send(); err != nil {
			t.Errorf("%s: %v", r.Table(), err)
		}
	}
}

func TestATrajectoryBecomesARowAndItsTurns(t *testing.T) {
	scored := &sluicev1.Scored{
		Trajectory: &sluicev1.Trajectory{
			Prompt: &sluicev1.Prompt{
				Group:   &sluicev1.GroupPlace{RunId: "r", Incarnation: 2, Step: 3, Slot: 4},
				Problem: &sluicev1.Problem{QuestionId: "q", Question: "1+1?", Answer: "2"}, Mode: sluicev1.Mode_MODE_TRAIN, FedAt: timestamppb.New(noon),
			},
			SampleIndex: 5, Copy: 6, PromptTokens: tokens.IDs(1, 2, 3), EndReason: sluicev1.EndReason_END_REASON_OBSERVATION_DOES_NOT_FIT, CodeCalls: 1, Executions: 2, FailedAttempts: 5, LogprobsMode: "raw", Dialect: "vllm",
			Turns: []*sluicev1.Turn{
				{Tokens: tokens.IDs(4, 5), Logprobs: tokens.Floats(-1, -2), Versions: tokens.Versions(8, 7), Text: "a <tool_call>", Kind: sluicev1.TurnKind_TURN_KIND_TOOL, Code: "x", GlueTokens: tokens.IDs(9), Aborts: 1, Attempts: 3, VersionSource: sluicev1.VersionSource_VERSION_SOURCE_SINGLE,
					Execution: &sluicev1.Execution{Outcome: sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_OUT_OF_MEMORY, WallMs: 12, Delivery: 3, UnknownRuns: 2}},
				{Tokens: tokens.IDs(6), Logprobs: tokens.Floats(-3), Versions: tokens.Versions(9), Text: "<tool_call>", Kind: sluicev1.TurnKind_TURN_KIND_TOOL, Code: "y", Truncated: true,
					Execution: &sluicev1.Execution{Outcome: sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_OK}},
				{Text: "no call", Kind: sluicev1.TurnKind_TURN_KIND_ANSWER},
			},
		},
		Graded: true, Reward: -1, Scores: []*sluicev1.Score{{Name: "outcome", Version: "2", Reward: -1}, {Name: "other", Error: "failed"}},
		Verdict: &sluicev1.Verdict{Outcome: sluicev1.VerdictOutcome_VERDICT_OUTCOME_UNDECIDED}, ScoredAt: timestamppb.New(noon.Add(time.Second)),
	}
	got := Of(scored, source())
	if len(got) != 4 {
		t.Fatalf("%d rows, want a trajectory and three turns", len(got))
	}
	tr := got[0].(*Trajectory)
	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"member", tr.Member, Member{Step: Step{"r", 2, 3}, Slot: 4, SampleIndex: 5, Copy: 6}},
		{"source", tr.Source, Source{"scored", 3, 77, noon.Add(time.Second)}},
		{"mode", tr.Mode, "train"}, {"end reason", tr.EndReason, "observation_does_not_fit"}, {"verdict", tr.Verdict, "undecided"},
		{"turns", tr.Turns, uint32(3)}, {"tool-call turns", tr.ToolCallTurns, uint32(2)}, {"truncated turns", tr.TruncatedTurns, uint32(1)}, {"aborts", tr.Aborts, uint32(1)},
		{"failed attempts", tr.FailedAttempts, uint32(5)}, {"logprobs", tr.LogprobsMode, "raw"}, {"dialect", tr.Dialect, "vllm"},
		{"attempts", got[1].(*Turn).Attempts, uint32(3)}, {"version source", got[1].(*Turn).VersionSource, "single"},
		{"policy tokens", tr.PolicyTokens, uint32(3)}, {"glue tokens", tr.GlueTokens, uint32(1)}, {"all tokens", tr.TrajectoryTokens, uint32(7)},
		{"least version", tr.PolicyVersionMin, uint32(7)}, {"greatest version", tr.PolicyVersionMax, uint32(9)},
		{"first outcome", tr.FirstOutcome, "out_of_memory"}, {"scorer", tr.Scorer, "outcome"}, {"score errors", tr.ScoreErrors, []string{"", "failed"}},
		{"fed", *tr.FedAt, noon}, {"never started", tr.StartedAt, (*time.Time)(nil)},
		{"attempt", got[1].(*Turn).Delivery, uint32(3)}, {"unknown runs", got[1].(*Turn).UnknownRuns, uint32(2)},
		{"second execution", got[2].(*Turn).Execution, uint32(2)}, {"no execution", got[3].(*Turn).Outcome, ""}, {"turn", got[3].(*Turn).Turn, uint32(2)},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestFatesOfAClosedGroup(t *testing.T) {
	got := Of(&sluicev1.GroupClosed{
		Group: &sluicev1.GroupPlace{RunId: "r", Step: 1}, Mode: sluicev1.Mode_MODE_EVAL, Closing: sluicev1.Closing_CLOSING_DROPPED,
		Members: []*sluicev1.MemberClosing{
			{SampleIndex: 0, Copy: 9, Fate: sluicev1.MemberFate_MEMBER_FATE_SHORT_GROUP, Reward: 1},
			{SampleIndex: 1, Fate: sluicev1.MemberFate_MEMBER_FATE_MISSING},
		},
	}, source())
	if g := got[0].(*Group); g.Closing != "dropped" || g.Missing != 1 || g.Mode != "eval" || !g.EventTime.Equal(noon) {
		t.Errorf("group %+v", g)
	}
	if a, b := got[1].(*GroupFate), got[2].(*GroupFate); a.Fate != "short_group" || a.Copy != 9 || b.Fate != "missing" || b.Copy != 0 {
		t.Errorf("fates %+v, %+v", a, b)
	}
}

// The clock of a broken host must not decide in which month a row lies, and a value the
// column cannot hold must not fail an insert for ever.
func TestEventTimes(t *testing.T) {
	for _, c := range []struct {
		name   string
		record time.Time
		event  *timestamppb.Timestamp
		want   time.Time
	}{
		{"the event's", noon, timestamppb.New(noon.Add(-time.Hour)), noon.Add(-time.Hour)},
		{"missing", noon, nil, noon},
		{"years off", noon, timestamppb.New(noon.AddDate(-5, 0, 0)), noon},
		{"before all time", noon, &timestamppb.Timestamp{Seconds: math.MinInt64}, noon},
		{"a record without a time", time.Time{}, nil, earliest},
		{"a record of the far future", time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC), nil, latest},
	} {
		got := Of(&sluicev1.PolicyUpdate{PublishedAt: c.event}, Source{EventTime: c.record})[0].(*PolicyUpdate)
		if !got.EventTime.Equal(c.want) {
			t.Errorf("%s: %v, want %v", c.name, got.EventTime, c.want)
		}
	}
	if when(&timestamppb.Timestamp{Seconds: math.MaxInt64}) != nil || when(nil) != nil || when(&timestamppb.Timestamp{}) != nil {
		t.Error("a time that makes no sense is no NULL")
	}
}

func TestTheSameRecordGivesTheSameRows(t *testing.T) {
	m := &sluicev1.TrainerReport{RunId: "r", Step: 1, Extra: map[string]float64{"a": 1, "b": 2}}
	if diff := cmp.Diff(Of(m, source()), Of(proto.Clone(m), source())); diff != "" {
		t.Error(diff)
	}
	if Of(&sluicev1.CodeCall{}, source()) != nil {
		t.Error("a message of another topic gave rows")
	}
}
