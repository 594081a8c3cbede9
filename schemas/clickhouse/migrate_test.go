package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/sluice-rl/sluice/schemas/clickhouse/clickhousetest"
)

var quiet = slog.New(slog.DiscardHandler)

func builtIn(t *testing.T) plan {
	t.Helper()
	tables, err := load(files, "tables")
	if err != nil {
		t.Fatal(err)
	}
	views, err := load(files, "views")
	if err != nil {
		t.Fatal(err)
	}
	return plan{tables, views, ViewsVersion}
}

// created is how many tables a plan's files make; the other files change them.
func created(p plan) int {
	n := 0
	for _, f := range p.tables {
		n += strings.Count(f.text, "CREATE TABLE IF NOT EXISTS")
	}
	return n
}

func TestMigration(t *testing.T) {
	s := clickhousetest.Start(t)
	for name, protocol := range map[string]clickhouse.Protocol{"native": clickhouse.Native, "http": clickhouse.HTTP} {
		t.Run("repeated, over "+name, func(t *testing.T) {
			opts := s.Options(protocol, "")
			for range 3 {
				if err := Migrate(t.Context(), opts, "repeated_"+name, quiet); err != nil {
					t.Fatal(err)
				}
			}
			conn := s.Open(t, protocol, "repeated_"+name)
			var n uint64
			if err := conn.QueryRow(t.Context(), "SELECT count() FROM schema_migrations").Scan(&n); err != nil {
				t.Fatal(err)
			}
			if want := uint64(len(builtIn(t).tables) + 1); n != want {
				t.Errorf("%d rows in schema_migrations, want %d: repeating adds none", n, want)
			}
		})
	}

	t.Run("by six processes at once", func(t *testing.T) {
		var wg sync.WaitGroup
		errs := make([]error, 6)
		for i := range errs {
			wg.Go(func() { errs[i] = Migrate(t.Context(), s.Options(clickhouse.Native, ""), "at_once", quiet) })
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		conn := s.Open(t, clickhouse.Native, "at_once")
		var tables uint64
		if err := conn.QueryRow(t.Context(), "SELECT count() FROM system.tables WHERE database = 'at_once'").Scan(&tables); err != nil {
			t.Fatal(err)
		}
		p := builtIn(t)
		if want := uint64(created(p) + len(p.views) + 1); tables != want {
			t.Errorf("%d tables and views, want %d", tables, want)
		}
	})

	t.Run("every MergeTree table remembers insert tokens", func(t *testing.T) {
		conn := s.Open(t, clickhouse.Native, "at_once")
		rows, err := conn.Query(t.Context(), "SELECT name, create_table_query FROM system.tables WHERE database = 'at_once' AND engine LIKE '%MergeTree'")
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		n := 0
		for rows.Next() {
			var name, query string
			if err := rows.Scan(&name, &query); err != nil {
				t.Fatal(err)
			}
			n++
			if !strings.Contains(query, "non_replicated_deduplication_window = 10000") {
				t.Errorf("%s has no deduplication window: %s", name, query)
			}
			if name != "schema_migrations" && !strings.Contains(query, "PARTITION BY toYYYYMM(event_time)") {
				t.Errorf("%s is not partitioned by event time", name)
			}
		}
		if n != created(builtIn(t))+1 {
			t.Errorf("%d tables looked at", n)
		}
	})

	t.Run("what is refused", func(t *testing.T) {
		opts := s.Options(clickhouse.Native, "")
		mine := builtIn(t)
		if err := migrate(t.Context(), opts, "refused", mine, quiet); err != nil {
			t.Fatal(err)
		}
		older := mine
		older.tables = mine.tables[:len(mine.tables)-1]
		changed := mine
		changed.tables = append([]file{}, mine.tables...)
		changed.tables[2].checksum = checksum("something else")
		newerViews := mine
		newerViews.viewsVersion++
		for _, c := range []struct {
			name string
			plan plan
			want error
			word string
		}{
			{"a build without the newest table", older, ErrNewerDatabase, mine.tables[len(mine.tables)-1].name},
			{"a build whose file was changed", changed, ErrChanged, mine.tables[2].name},
			{"a build with newer views", newerViews, nil, ""},
			{"the build before it, after that", mine, ErrNewerDatabase, "views of version"},
		} {
			err := migrate(t.Context(), opts, "refused", c.plan, quiet)
			if !errors.Is(err, c.want) || (c.want != nil) != Refused(err) {
				t.Errorf("%s: %v, want %v", c.name, err, c.want)
			}
			if err != nil && !strings.Contains(err.Error(), c.word) {
				t.Errorf("%s: %v: does not name %q", c.name, err, c.word)
			}
		}
	})

	t.Run("a server that refuses or is not there", func(t *testing.T) {
		refused := func(protocol clickhouse.Protocol, user, password string) {
			t.Helper()
			bad := s.Options(protocol, "")
			bad.Auth.Username, bad.Auth.Password = user, password
			if err := Migrate(t.Context(), bad, "x", quiet); err == nil || !Refused(err) {
				t.Errorf("user %s over %v: %v, want it refused", user, protocol, err)
			}
		}
		refused(clickhouse.HTTP, "writer", "wrong")
		refused(clickhouse.HTTP, "nobody", "")
		refused(clickhouse.HTTP, "default", "")
		refused(clickhouse.HTTP, "reader", s.ReaderPassword)
		// Last and once: libchdb's engine may abort after it turned a native client away.
		refused(clickhouse.Native, "writer", "wrong")
		absent := s.Options(clickhouse.Native, "")
		absent.Addr = []string{"127.0.0.1:1"}
		if err := Migrate(t.Context(), absent, "x", quiet); err == nil || Refused(err) {
			t.Errorf("absent: %v, want an error that may go away", err)
		}
		if err := Migrate(t.Context(), absent, "x", quiet); !errors.Is(err, context.Canceled) && err == nil {
			t.Error("no error")
		}
	})
}

func TestDatabaseNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"sluice": true, "demo_2": true, "": false, "2demo": false, "a b": false, "a`b": false, "a;DROP": false,
		"default": false, "system": false, "INFORMATION_SCHEMA": false, strings.Repeat("x", 64): false,
	} {
		if err := CheckDatabase(name); (err == nil) != ok || err != nil && !errors.Is(err, ErrDatabaseName) {
			t.Errorf("%q: %v, want ok = %t", name, err, ok)
		}
	}
}

func TestStatements(t *testing.T) {
	got := Statements("-- a comment;\nSELECT 1;\n\nSELECT 'a;b'\nFROM x;\nSELECT 3\n")
	want := []string{"-- a comment;\nSELECT 1", "\nSELECT 'a;b'\nFROM x", "SELECT 3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A view that changes without ViewsVersion would be put back by an older build.
func TestViewsVersionRisesWithTheViews(t *testing.T) {
	p := builtIn(t)
	now := fmt.Sprintf("%d %s\n", p.viewsVersion, p.viewsChecksum())
	const golden = "testdata/views.version"
	if os.Getenv("SLUICE_REWRITE") != "" {
		if err := os.WriteFile(golden, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if string(b) != now {
		t.Errorf("views are %s, %s says %s: raise ViewsVersion, then run with SLUICE_REWRITE=1", now, golden, b)
	}
}

// A database with data takes new columns while a writer of the build before is at work:
// its rows are kept, and every view works.
func TestTablesWithDataTakeColumns(t *testing.T) {
	s := clickhousetest.Start(t)
	all := builtIn(t)
	var before plan
	before.viewsVersion = 1
	// Up to the first file that changes tables.
	for _, f := range all.tables {
		if !strings.Contains(f.text, "CREATE TABLE IF NOT EXISTS") {
			break
		}
		before.tables = append(before.tables, f)
	}
	if len(before.tables) == len(all.tables) {
		t.Fatal("no file changes a table: this test shows nothing")
	}
	opts := s.Options(clickhouse.Native, "")
	if err := migrate(t.Context(), opts, "older", before, quiet); err != nil {
		t.Fatal(err)
	}
	conn := s.Open(t, clickhouse.Native, "older")
	insert := func(copy int) {
		t.Helper()
		if err := conn.Exec(t.Context(), "INSERT INTO trajectories (source_topic, event_time, run_id, step, copy, mode, graded, reward) VALUES ('scored', now64(6), 'r', 1, ?, 'train', true, 1)", copy); err != nil {
			t.Fatal(err)
		}
	}
	insert(1)
	if err := migrate(t.Context(), opts, "older", all, quiet); err != nil {
		t.Fatal(err)
	}
	insert(2)
	for _, v := range all.views {
		name := strings.TrimSuffix(v.name[strings.Index(v.name, "_")+1:], ".sql")
		var n uint64
		if err := conn.QueryRow(t.Context(), "SELECT count() FROM (SELECT * FROM "+name+")").Scan(&n); err != nil {
			t.Errorf("view %s: %v", name, err)
		}
	}
	var n, executions uint64
	if err := conn.QueryRow(t.Context(), "SELECT count(), sum(length(execution_outcomes)) FROM trajectory_fates").Scan(&n, &executions); err != nil || n != 2 || executions != 0 {
		t.Errorf("%d rows with %d executions, %v: want the row of before and the older writer's", n, executions, err)
	}
}
