package up

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/sluice-rl/sluice/topology/sluice/terminal"
)

// Summary is summary.json.
type Summary struct {
	Steps             []StepSummary `json:"steps"`
	Trajectories      uint64        `json:"trajectories"`
	CodeCalls         uint64        `json:"code_calls"`
	DuplicatesDropped uint64        `json:"duplicates_dropped"`
	DeadLetters       uint64        `json:"dead_letters"`
	// Seconds from the first start to the last answered step, pauses between an
	// interruption and the next start left out.
	Seconds float64 `json:"seconds"`
}

// StepSummary is one row of the view step_summary, where the denominator of each rate
// is written. Null where a denominator is 0.
type StepSummary struct {
	Step                 uint64   `json:"step"`
	RewardMean           *float64 `json:"reward_mean"`
	CorrectRate          *float64 `json:"correct_rate"`
	ValidBoxRate         *float64 `json:"valid_box_rate"`
	ValidToolCallRate    *float64 `json:"valid_tool_call_rate"`
	CodeCallRate         *float64 `json:"code_call_rate"`
	CodeCallsMean        *float64 `json:"code_calls_mean"`
	TurnsMean            *float64 `json:"turns_mean"`
	SelfCorrectionRate   *float64 `json:"self_correction_rate"`
	ExecOKRate           *float64 `json:"exec_ok_rate"`
	ExecErrorRate        *float64 `json:"exec_error_rate"`
	ExecTimeoutRate      *float64 `json:"exec_timeout_rate"`
	ExecLatencyMS        *float64 `json:"exec_latency_ms"`
	DegenerateGroupRate  *float64 `json:"degenerate_group_rate"`
	TrajectoryTokensMean *float64 `json:"trajectory_tokens_mean"`
	LossTokens           *uint64  `json:"loss_tokens"`
	PaddedTokens         *uint64  `json:"padded_tokens"`
	UpdateSkipped        *bool    `json:"update_skipped"`
}

// stepSQL asks for the rows of a run's newest incarnation of each step. The casts fix
// what this program scans, whatever the view computes with.
const stepSQL = `
SELECT
    toUInt64(step),
    toNullable(toFloat64(reward_mean)), toNullable(toFloat64(correct_rate)), toNullable(toFloat64(valid_box_rate)),
    toNullable(toFloat64(valid_tool_call_rate)), toNullable(toFloat64(code_call_rate)), toNullable(toFloat64(code_calls_mean)),
    toNullable(toFloat64(turns_mean)), toNullable(toFloat64(self_correction_rate)), toNullable(toFloat64(exec_ok_rate)),
    toNullable(toFloat64(exec_error_rate)), toNullable(toFloat64(exec_timeout_rate)), toNullable(toFloat64(exec_latency_ms)),
    toNullable(toFloat64(degenerate_group_rate)), toNullable(toFloat64(trajectory_tokens_mean)),
    toNullable(toUInt64(loss_tokens)), toNullable(toUInt64(padded_tokens)), toNullable(toBool(update_skipped))
FROM %s.step_summary
WHERE run_id = {run:String}
ORDER BY step, incarnation DESC
LIMIT 1 BY step`

const totalsSQL = `
SELECT toUInt64(trajectories), toUInt64(code_calls), toUInt64(duplicates_dropped)
FROM %s.run_summary WHERE run_id = {run:String} AND mode = 'train'`

// Dead letters whose header could not be read belong to no run: those of the run's
// time are counted with it.
const deadLettersSQL = `
SELECT toUInt64(count()) FROM %s.dead_letters FINAL
WHERE run_id = {run:String} OR (run_id = '' AND event_time >= fromUnixTimestamp64Milli({since:Int64}))`

// querySummary asks ClickHouse what came of the run.
func (s *system) querySummary(ctx context.Context) (Summary, error) {
	conn, err := s.openClickHouse()
	if err != nil {
		return Summary{}, err
	}
	defer func() { _ = conn.Close() }()
	ctx = ch.Context(ctx, ch.WithParameters(ch.Parameters{
		"run": s.run.RunID, "since": fmt.Sprint(s.run.Started.UnixMilli()),
	}))
	sum := Summary{Steps: []StepSummary{}, Seconds: s.run.Seconds}
	rows, err := conn.Query(ctx, s.inDatabase(stepSQL))
	if err != nil {
		return sum, fmt.Errorf("ask ClickHouse for step_summary: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var r StepSummary
		err := rows.Scan(&r.Step, &r.RewardMean, &r.CorrectRate, &r.ValidBoxRate, &r.ValidToolCallRate, &r.CodeCallRate,
			&r.CodeCallsMean, &r.TurnsMean, &r.SelfCorrectionRate, &r.ExecOKRate, &r.ExecErrorRate, &r.ExecTimeoutRate,
			&r.ExecLatencyMS, &r.DegenerateGroupRate, &r.TrajectoryTokensMean, &r.LossTokens, &r.PaddedTokens, &r.UpdateSkipped)
		if err != nil {
			return sum, fmt.Errorf("read step_summary: %w", err)
		}
		sum.Steps = append(sum.Steps, r)
	}
	if err := rows.Err(); err != nil {
		return sum, fmt.Errorf("read step_summary: %w", err)
	}
	if len(sum.Steps) == 0 {
		return sum, fmt.Errorf("ClickHouse knows no step of run %s: see %s", s.run.RunID, s.dir.file("logs", metrics+".log"))
	}
	if err := conn.QueryRow(ctx, s.inDatabase(totalsSQL)).Scan(&sum.Trajectories, &sum.CodeCalls, &sum.DuplicatesDropped); err != nil {
		return sum, fmt.Errorf("ask ClickHouse for run_summary: %w", err)
	}
	if err := conn.QueryRow(ctx, s.inDatabase(deadLettersSQL)).Scan(&sum.DeadLetters); err != nil {
		return sum, fmt.Errorf("ask ClickHouse for dead letters: %w", err)
	}
	return sum, nil
}

// inDatabase puts the database's name, checked by Validate, into a query. It is not
// named when connecting, because the first rows may not have made it yet.
func (s *system) inDatabase(sql string) string { return fmt.Sprintf(sql, s.o.CHDatabase) }

func (s *system) openClickHouse() (ch.Conn, error) {
	var password string
	if s.at.reader.passwordFile != "" {
		b, err := os.ReadFile(s.at.reader.passwordFile)
		if err != nil {
			return nil, fmt.Errorf("password of ClickHouse: %w", err)
		}
		password = strings.TrimRight(string(b), "\r\n")
	}
	conn, err := ch.Open(&ch.Options{
		Addr:        []string{s.at.clickhouseAddr},
		Auth:        ch.Auth{Username: s.at.reader.user, Password: password},
		DialTimeout: 10 * time.Second,
	})
	if err != nil {
		return nil, fmt.Errorf("ClickHouse at %s: %w", s.at.clickhouseAddr, err)
	}
	return conn, nil
}

// table is the summary for people.
func (sum Summary) table() string {
	head := []string{"step", "reward", "correct", "boxed", "tool ok", "code", "calls", "turns", "mended", "exec ok", "exec ms", "degen.", "tokens", "loss tok.", "update"}
	var rows [][]string
	for _, r := range sum.Steps {
		update := "-"
		if r.UpdateSkipped != nil {
			update = map[bool]string{false: "trained", true: "skipped"}[*r.UpdateSkipped]
		}
		loss := "-"
		if r.LossTokens != nil {
			loss = fmt.Sprint(*r.LossTokens)
		}
		rows = append(rows, []string{
			fmt.Sprint(r.Step), number("%+.3f", r.RewardMean), percent(r.CorrectRate), percent(r.ValidBoxRate), percent(r.ValidToolCallRate),
			percent(r.CodeCallRate), number("%.2f", r.CodeCallsMean), number("%.2f", r.TurnsMean), percent(r.SelfCorrectionRate),
			percent(r.ExecOKRate), number("%.0f", r.ExecLatencyMS), percent(r.DegenerateGroupRate), number("%.0f", r.TrajectoryTokensMean), loss, update,
		})
	}
	return terminal.Table(head, rows) + fmt.Sprintf(
		"\n%d trajectories, %d code calls, %d second copies dropped, %d dead letters, %.1f s\n",
		sum.Trajectories, sum.CodeCalls, sum.DuplicatesDropped, sum.DeadLetters, sum.Seconds)
}

func number(format string, v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf(format, *v)
}

func percent(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", 100**v)
}
