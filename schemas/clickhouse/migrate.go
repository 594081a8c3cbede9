package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

var (
	// ErrNewerDatabase: a newer build migrated the database.
	ErrNewerDatabase = errors.New("database of a newer version")
	// ErrChanged: a table of the database was made from another text than this
	// build's file of the same number.
	ErrChanged = errors.New("database made from other files")
	// ErrDatabaseName: the name cannot be a database of ours.
	ErrDatabaseName = errors.New("invalid database name")
)

// Refused tells errors that stay until somebody changes something, the user and its
// rights among them, from those of a server that is absent or busy.
func Refused(err error) bool {
	if e := (*clickhouse.Exception)(nil); errors.As(err, &e) {
		return slices.Contains(refusals, e.Code)
	}
	return errors.Is(err, ErrNewerDatabase) || errors.Is(err, ErrChanged) || errors.Is(err, ErrDatabaseName)
}

// refusals are the codes with which ClickHouse turns a user away.
var refusals = []int32{
	164, // READONLY: the user may only read
	192, // UNKNOWN_USER
	193, // WRONG_PASSWORD
	194, // REQUIRED_PASSWORD
	195, // IP_ADDRESS_NOT_ALLOWED
	291, // DATABASE_ACCESS_DENIED
	497, // ACCESS_DENIED
	516, // AUTHENTICATION_FAILED: for an unknown user as for a wrong password
}

var databaseForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

// CheckDatabase refuses a name that is not 1 to 63 of A-Z a-z 0-9 _ (no digit first),
// or that ClickHouse uses itself. The embedded engine's "default" shows files as
// tables.
func CheckDatabase(name string) error {
	if !databaseForm.MatchString(name) {
		return fmt.Errorf("%w: %q: want 1 to 63 of A-Z a-z 0-9 _, no digit first", ErrDatabaseName, name)
	}
	switch strings.ToLower(name) {
	case "default", "system", "information_schema":
		return fmt.Errorf("%w: %q is ClickHouse's own: name one for Sluice", ErrDatabaseName, name)
	}
	return nil
}

// schemaMigrations holds what was applied. Two processes may insert the same row.
const schemaMigrations = `CREATE TABLE IF NOT EXISTS schema_migrations
(
    kind       LowCardinality(String), -- table, views
    version    UInt32,
    name       String,
    checksum   String,
    applied_at DateTime64(6, 'UTC')
)
ENGINE = ReplacingMergeTree(applied_at)
ORDER BY (kind, version)
SETTINGS non_replicated_deduplication_window = 10000`

const (
	kindTable = "table"
	kindViews = "views"
)

// Migrate makes the database and brings its tables and views to this build's state.
// opts say how to reach the server; their database is not used. An error for which
// Refused is false may go away by itself.
func Migrate(ctx context.Context, opts *clickhouse.Options, database string, log *slog.Logger) error {
	if err := CheckDatabase(database); err != nil {
		return err
	}
	tables, err := load(files, "tables")
	if err != nil {
		return err
	}
	views, err := load(files, "views")
	if err != nil {
		return err
	}
	return migrate(ctx, opts, database, plan{tables, views, ViewsVersion}, log)
}

// plan is what a build wants to find.
type plan struct {
	tables, views []file
	viewsVersion  uint32
}

func (p plan) viewsChecksum() string {
	var all strings.Builder
	for _, f := range p.views {
		all.WriteString(f.name + "\n" + f.text)
	}
	return checksum(all.String())
}

func migrate(ctx context.Context, opts *clickhouse.Options, database string, p plan, log *slog.Logger) error {
	err := withConn(opts, "system", func(conn driver.Conn) error {
		// The name was checked; identifiers cannot be parameters.
		return conn.Exec(ctx, "CREATE DATABASE IF NOT EXISTS "+database+" ENGINE = Atomic")
	})
	if err != nil {
		return fmt.Errorf("create database %s: %w", database, err)
	}
	return withConn(opts, database, func(conn driver.Conn) error {
		m := migration{conn: conn, database: database, log: log}
		return m.run(ctx, p)
	})
}

func withConn(opts *clickhouse.Options, database string, f func(driver.Conn) error) error {
	o := *opts
	o.Auth.Database = database
	conn, err := clickhouse.Open(&o)
	if err != nil {
		return err
	}
	defer conn.Close()
	return f(conn)
}

type migration struct {
	conn     driver.Conn
	database string
	log      *slog.Logger
}

// applied is what the database says was applied, by number.
type applied struct {
	tables        map[uint32]file
	viewsVersion  uint32
	viewsChecksum string
}

func (m migration) run(ctx context.Context, p plan) error {
	if err := m.conn.Exec(ctx, schemaMigrations); err != nil {
		return fmt.Errorf("create schema_migrations: %w", err)
	}
	done, err := m.read(ctx)
	if err != nil {
		return fmt.Errorf("read schema_migrations: %w", err)
	}
	if err := m.check(done, p); err != nil {
		return err
	}
	tablesChanged := false
	for _, f := range p.tables {
		if _, ok := done.tables[f.version]; ok {
			continue
		}
		tablesChanged = true
		if err := m.apply(ctx, f); err != nil {
			return err
		}
		if err := m.record(ctx, kindTable, f.version, f.name, f.checksum); err != nil {
			return err
		}
		m.log.Info("table made", "database", m.database, "file", f.name)
	}
	sum := p.viewsChecksum()
	// A view keeps the columns that its tables had when it was made.
	if !tablesChanged && done.viewsVersion == p.viewsVersion && done.viewsChecksum == sum {
		return nil
	}
	for _, f := range p.views {
		if err := m.apply(ctx, f); err != nil {
			return err
		}
	}
	m.log.Info("views made", "database", m.database, "version", p.viewsVersion)
	return m.record(ctx, kindViews, p.viewsVersion, "views", sum)
}

func (m migration) read(ctx context.Context) (applied, error) {
	a := applied{tables: map[uint32]file{}}
	rows, err := m.conn.Query(ctx, "SELECT kind, version, name, checksum FROM schema_migrations FINAL ORDER BY version")
	if err != nil {
		return a, err
	}
	defer rows.Close()
	for rows.Next() {
		var kind string
		var f file
		if err := rows.Scan(&kind, &f.version, &f.name, &f.checksum); err != nil {
			return a, err
		}
		switch kind {
		case kindTable:
			a.tables[f.version] = f
		case kindViews:
			a.viewsVersion, a.viewsChecksum = f.version, f.checksum
		}
	}
	return a, rows.Err()
}

func (m migration) check(done applied, p plan) error {
	known := map[uint32]file{}
	for _, f := range p.tables {
		known[f.version] = f
	}
	for n, f := range done.tables {
		mine, ok := known[n]
		if !ok {
			return fmt.Errorf("%w: %s has table file %d (%s), this build knows %d: upgrade metrics-writer, or name another database", ErrNewerDatabase, m.database, n, f.name, len(p.tables))
		}
		if mine.checksum != f.checksum {
			return fmt.Errorf("%w: %s: table file %d was %s with checksum %.12s, this build's %s has %.12s: a file that was applied must not change, add a new one; or name another database", ErrChanged, m.database, n, f.name, f.checksum, mine.name, mine.checksum)
		}
	}
	if done.viewsVersion > p.viewsVersion {
		return fmt.Errorf("%w: %s has views of version %d, this build's are %d: upgrade metrics-writer, or name another database", ErrNewerDatabase, m.database, done.viewsVersion, p.viewsVersion)
	}
	return nil
}

// apply runs a file's statements. Each may be repeated; where another process runs the
// same one in the same moment, ClickHouse may refuse one of the two, so it is tried
// again.
func (m migration) apply(ctx context.Context, f file) error {
	for _, statement := range Statements(f.text) {
		var err error
		for attempt := range 5 {
			if err = m.conn.Exec(ctx, statement); err == nil {
				break
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Duration(attempt+1) * 50 * time.Millisecond):
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

func (m migration) record(ctx context.Context, kind string, version uint32, name, sum string) error {
	err := m.conn.Exec(ctx, "INSERT INTO schema_migrations (kind, version, name, checksum, applied_at) VALUES (?, ?, ?, ?, now64(6))", kind, version, name, sum)
	if err != nil {
		return fmt.Errorf("record %s: %w", name, err)
	}
	return nil
}
