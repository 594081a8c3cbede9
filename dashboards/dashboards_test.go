package dashboards

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	chschema "github.com/sluice-rl/sluice/schemas/clickhouse"
	"github.com/sluice-rl/sluice/schemas/clickhouse/clickhousetest"
)

// hostileRun is a run id as nobody can make one, to show that it stays a value.
const hostileRun = `r' OR 1 = 1 --`

type panel struct {
	Title      string `json:"title"`
	Type       string `json:"type"`
	Datasource struct {
		Type, UID string
	} `json:"datasource"`
	Targets []struct {
		RawSQL string `json:"rawSql"`
	} `json:"targets"`
	Options struct {
		XField string `json:"xField"`
	} `json:"options"`
	Transformations []struct {
		Options struct {
			Include struct {
				Names []string `json:"names"`
			} `json:"include"`
		} `json:"options"`
	} `json:"transformations"`
}

type dashboard struct {
	Title      string `json:"title"`
	Templating struct {
		List []struct{ Name, Type, Query string }
	} `json:"templating"`
	Panels []panel `json:"panels"`
}

// ask runs a query for a run and returns its columns and the number of its rows.
func ask(t *testing.T, conn driver.Conn, sql, run string) (columns []string, rows int) {
	t.Helper()
	ctx := clickhouse.Context(context.Background(), clickhouse.WithParameters(clickhouse.Parameters{
		"run": run, "step": "1", "slot": "0", "sample": "0",
	}))
	r, err := conn.Query(ctx, sql)
	if err != nil {
		t.Fatalf("%s\n%v", sql, err)
	}
	defer r.Close()
	for r.Next() {
		rows++
	}
	if err := r.Err(); err != nil {
		t.Fatalf("%s\n%v", sql, err)
	}
	return r.Columns(), rows
}

func TestEveryQuestionAndPanelIsAnsweredByTheRealEngine(t *testing.T) {
	s := clickhousetest.Start(t)
	hand, err := os.ReadFile("../schemas/clickhouse/testdata/hand.sql")
	if err != nil {
		t.Fatal(err)
	}
	if err := chschema.Migrate(t.Context(), s.Options(clickhouse.HTTP, ""), "sluice", slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	writer := s.Open(t, clickhouse.HTTP, "sluice")
	report := "INSERT INTO trainer_reports (source_topic, event_time, run_id, step) VALUES ('trainer-reports', '2026-11-01 12:00:17', 'r', 1)"
	for _, statement := range append(chschema.Statements(string(hand)), report) {
		if err := writer.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	questions, err := Queries()
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(Grafana(), &d); err != nil {
		t.Fatal(err)
	}
	for name, protocol := range map[string]clickhouse.Protocol{"native": clickhouse.Native, "http": clickhouse.HTTP} {
		t.Run(name, func(t *testing.T) {
			// As the user that dashboards get: one that can only read.
			o := s.Options(protocol, "sluice")
			o.Auth.Username, o.Auth.Password = "reader", s.ReaderPassword
			conn, err := clickhouse.Open(o)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			for _, q := range questions {
				start := time.Now()
				if _, rows := ask(t, conn, q.SQL, "r"); rows == 0 {
					t.Errorf("%s: no rows of a run that has some", q.Name)
				}
				t.Logf("%s: %v", q.Name, time.Since(start))
				if _, rows := ask(t, conn, q.SQL, hostileRun); rows != 0 && q.Name != "dead_letters" {
					t.Errorf("%s: %d rows for a run that is not there", q.Name, rows)
				}
			}
			for _, v := range d.Templating.List {
				if v.Type == "query" {
					if _, rows := ask(t, conn, v.Query, "r"); rows != 1 {
						t.Errorf("variable %s: %d rows, want the one run", v.Name, rows)
					}
				}
			}
			for _, p := range d.Panels {
				for _, target := range p.Targets {
					// Grafana puts the variable there as a quoted literal.
					columns, rows := ask(t, conn, strings.ReplaceAll(target.RawSQL, "${run:singlequote}", "{run:String}"), "r")
					if rows == 0 {
						t.Errorf("panel %q: no rows", p.Title)
					}
					if p.Options.XField != "" && !slices.Contains(columns, p.Options.XField) {
						t.Errorf("panel %q draws over %q, which its query does not give: %v", p.Title, p.Options.XField, columns)
					}
					for _, tr := range p.Transformations {
						for _, f := range tr.Options.Include.Names {
							if !slices.Contains(columns, f) {
								t.Errorf("panel %q shows %q, which its query does not give: %v", p.Title, f, columns)
							}
						}
					}
				}
			}
		})
	}
}

// A panel asks what a question file asks, so that what is shown can be asked by hand.
// The last line of an error is not what stands behind its line feed.
func TestTheLastLineOfAnErrorIsSaid(t *testing.T) {
	s := clickhousetest.Start(t)
	if err := chschema.Migrate(t.Context(), s.Options(clickhouse.HTTP, ""), "sluice", slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	conn := s.Open(t, clickhouse.HTTP, "sluice")
	const row = `INSERT INTO turns (source_topic, run_id, mode, outcome, exception, stderr)
VALUES ('scored', 'r', 'train', 'error', 'ValueError', 'Traceback (most recent call last):\nValueError: no\n\n')`
	if err := conn.Exec(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	questions, err := Queries()
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range questions {
		if q.Name != "error_messages" {
			continue
		}
		var (
			exception, last, example string
			n                        uint64
		)
		if err := conn.QueryRow(t.Context(), q.SQL, clickhouse.Named("run", "r")).Scan(&exception, &last, &n, &example); err != nil {
			t.Fatal(err)
		}
		if last != "ValueError: no" {
			t.Errorf("last line %q, want the error's", last)
		}
		return
	}
	t.Error("there is no such question any more")
}

func TestPanelsAskTheQuestionsOfTheFiles(t *testing.T) {
	questions, err := Queries()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, q := range questions {
		known[strings.ReplaceAll(q.SQL, "{run:String}", "${run:singlequote}")] = true
	}
	var d dashboard
	if err := json.Unmarshal(Grafana(), &d); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, p := range d.Panels {
		if p.Type != "row" && (len(p.Targets) != 1 || p.Datasource.Type != "grafana-clickhouse-datasource") {
			t.Errorf("panel %q: %d queries on %q", p.Title, len(p.Targets), p.Datasource.Type)
		}
		for _, target := range p.Targets {
			n++
			if !known[target.RawSQL] {
				t.Errorf("panel %q asks what no file in queries/ asks:\n%s", p.Title, target.RawSQL)
			}
		}
	}
	if n < 10 {
		t.Errorf("%d panels with a query, want at least 10", n)
	}
}
