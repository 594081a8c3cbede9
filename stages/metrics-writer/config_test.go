package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/sluice-rl/sluice/schemas/clickhouse/clickhousetest"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/topology/process"
)

func TestFlagsThatCannotWorkAreRefused(t *testing.T) {
	for args, word := range map[string]string{
		"":                              "",
		"--clickhouse-addr=ch":          "want host:port",
		"--clickhouse-addr=":            "--clickhouse-addr",
		"--clickhouse-protocol=grpc":    "want native or http",
		"--clickhouse-database=default": "ClickHouse's own",
		"--clickhouse-database=a;DROP":  "--clickhouse-database",
		"--clickhouse-user=":            "--clickhouse-user is empty",
		"--batch-records=0":             "--batch-records is 0",
		"--batch-bytes=0":               "--batch-bytes is 0",
		"--batch-interval=0s":           "--batch-interval is 0s",
	} {
		var c config
		flags := &process.Flags{}
		c.register(flags)
		if args != "" {
			if err := flags.Parse(args); err != nil {
				t.Fatal(err)
			}
		}
		err := c.validate()
		if (err != nil) != (word != "") || err != nil && !strings.Contains(err.Error(), word) {
			t.Errorf("%q: %v, want an error with %q", args, err, word)
		}
	}
}

func TestTokensNameTheirRowsAndNoOthers(t *testing.T) {
	a := kafka.Range{FullTopic: "t.scored", TopicID: "01", Partition: 1, From: 5, To: 9}
	seen := map[string]bool{}
	for _, change := range []func(*kafka.Range){
		func(*kafka.Range) {},
		func(r *kafka.Range) { r.FullTopic = "u.scored" },
		func(r *kafka.Range) { r.TopicID = "02" },
		func(r *kafka.Range) { r.Partition = 2 },
		func(r *kafka.Range) { r.From = 4 },
		func(r *kafka.Range) { r.To = 10 },
	} {
		b := a
		change(&b)
		for _, database := range []string{"sluice", "other"} {
			for _, table := range []string{"turns", "trajectories"} {
				token := token(database, b, table)
				if seen[token] {
					t.Errorf("two lots of rows have the token %s", token)
				}
				seen[token] = true
			}
		}
	}
	if got, want := token("sluice", a, "turns"), token("sluice", a, "turns"); got != want {
		t.Errorf("%s, then %s", want, got)
	}
}

// migrate runs the command of that name.
func migrate(out io.Writer, args ...string) error {
	return process.Execute(migrateCommand(), process.System{Args: args, Environ: os.LookupEnv, Stdout: out, Stderr: out})
}

func TestMigrateCommand(t *testing.T) {
	s := clickhousetest.Start(t)
	t.Setenv("SLUICE_CLICKHOUSE_PASSWORD", s.WriterPassword)
	args := []string{"--clickhouse-addr", s.HTTP, "--clickhouse-protocol", "http", "--clickhouse-user", "writer", "--clickhouse-database", "made"}
	var out bytes.Buffer
	for range 2 {
		if err := migrate(&out, args...); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(out.String(), "database made is up to date") {
		t.Errorf("it says %q", out.String())
	}
	conn := s.Open(t, clickhouse.HTTP, "made")
	if err := conn.Exec(t.Context(), "INSERT INTO schema_migrations VALUES ('table', 9999, '9999_later.sql', 'x', now64(6))"); err != nil {
		t.Fatal(err)
	}
	err := migrate(&out, args...)
	if !errors.Is(err, process.ErrUnusable) || !strings.Contains(err.Error(), "9999_later.sql") {
		t.Errorf("a newer database: %v, want it refused as unusable, by name", err)
	}
	if err := migrate(&out, "--clickhouse-database", "default"); !errors.Is(err, process.ErrUsage) {
		t.Errorf("database default: %v, want a usage error", err)
	}
}
