// Package dashboards holds the questions that Sluice's data answer, as SQL files, and a
// Grafana dashboard of them.
//
// queries/ has one question per file, in a comment at its top; the statement's
// parameters ({run:String}, in transcript also step, slot and sample) are ClickHouse's
// own, so that nothing is ever spliced into SQL. The tables and views they read are
// those of schemas/clickhouse, in the connection's database. grafana/training.json is
// for Grafana 10 or later with the ClickHouse data source (grafana-clickhouse-datasource),
// whose default database must be Sluice's: import it and choose data source and run.
package dashboards

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

//go:embed queries/*.sql
var queries embed.FS

//go:embed grafana/training.json
var grafana []byte

// Query is one question.
type Query struct {
	// Name is the file's, without .sql.
	Name string
	// Question is what it answers, in words.
	Question string
	// SQL is the statement.
	SQL string
}

// Queries are all questions, by name.
func Queries() ([]Query, error) {
	names, err := fs.Glob(queries, "queries/*.sql")
	if err != nil {
		return nil, err
	}
	var out []Query
	for _, name := range names {
		b, err := fs.ReadFile(queries, name)
		if err != nil {
			return nil, err
		}
		q := Query{Name: strings.TrimSuffix(path.Base(name), ".sql")}
		rest := string(b)
		for {
			line, after, ok := strings.Cut(rest, "\n")
			words, comment := strings.CutPrefix(line, "-- ")
			if !ok || !comment {
				break
			}
			q.Question = strings.TrimSpace(q.Question + " " + words)
			rest = after
		}
		if q.Question == "" {
			return nil, fmt.Errorf("%s: says no question in a comment at its top", name)
		}
		q.SQL = strings.TrimSuffix(strings.TrimSpace(rest), ";")
		out = append(out, q)
	}
	return out, nil
}

// Grafana is the dashboard's JSON.
func Grafana() []byte { return grafana }
