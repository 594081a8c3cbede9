package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/cenkalti/backoff/v5"

	chschema "github.com/sluice-rl/sluice/schemas/clickhouse"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/metrics-writer/rows"
)

// inserts is how many ranges are inserted at once.
const inserts = 4

// insertTimeout bounds the insert of one table's rows.
const insertTimeout = 2 * time.Minute

// sink inserts ranges into ClickHouse.
type sink struct {
	target target
	// replay is the id of the replay that is written; empty: the original.
	replay string
	log    *slog.Logger
	ready  func(name string, err error)
	// inserted is told of each table that a range was inserted into; may be nil.
	inserted func(table string, r kafka.Range)
	// turns holds a token for each insert under way.
	turns      chan struct{}
	statements map[string]string

	mu   sync.Mutex
	conn driver.Conn
	// away is why ClickHouse is not usable now, nil if it is.
	away error
	// told: it has been tried, and the log says how that went.
	told bool
}

func newSink(t target, log *slog.Logger, ready func(string, error)) *sink {
	s := &sink{target: t, log: log, ready: ready, turns: make(chan struct{}, inserts), statements: map[string]string{}}
	for _, r := range rows.Tables() {
		s.statements[r.Table()] = fmt.Sprintf("INSERT INTO %s (%s)", r.Table(), strings.Join(rows.Columns(r), ", "))
	}
	s.away = errors.New("not connected yet")
	s.ready("clickhouse", s.away)
	return s
}

// prepare waits until ClickHouse can be used. An error means that waiting is no use, or
// that ctx ended.
func (s *sink) prepare(ctx context.Context, migrate bool) error {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = 250*time.Millisecond, 10*time.Second
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := s.open(ctx, migrate)
		if err == nil || ctx.Err() != nil {
			return struct{}{}, err
		}
		if chschema.Refused(err) {
			return struct{}{}, backoff.Permanent(err)
		}
		s.state(err)
		return struct{}{}, err
	}, backoff.WithBackOff(b), backoff.WithMaxElapsedTime(0))
	return err
}

func (s *sink) open(ctx context.Context, migrate bool) error {
	if migrate {
		if err := chschema.Migrate(ctx, s.target.options(), s.target.database, s.log); err != nil {
			return err
		}
	}
	conn, err := clickhouse.Open(s.target.options())
	if err != nil {
		return err
	}
	if err := conn.Ping(ctx); err != nil {
		conn.Close()
		return err
	}
	s.mu.Lock()
	s.conn = conn
	s.mu.Unlock()
	s.state(nil)
	return nil
}

// Close ends the connections.
func (s *sink) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		s.conn.Close()
	}
}

// state records whether ClickHouse is usable, and says so when that changes.
func (s *sink) state(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := !s.told || (err == nil) != (s.away == nil)
	s.away, s.told = err, true
	if changed {
		s.ready("clickhouse", err)
	}
	switch {
	case changed && err == nil:
		s.log.Info("ClickHouse is there", "addr", s.target.addrs, "database", s.target.database)
	case changed:
		s.log.Warn("ClickHouse cannot be used: waiting for it; nothing is lost", "addr", s.target.addrs, "error", err)
	}
}

// Write implements kafka.Sink.
func (s *sink) Write(ctx context.Context, r kafka.Range) error {
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-ctx.Done():
		return ctx.Err()
	}
	byTable := map[string][]rows.Row{}
	for _, m := range r.Messages {
		source := rows.Source{Topic: r.FullTopic, Partition: m.Partition, Offset: m.Offset, EventTime: m.Time}
		for _, row := range s.rowsOf(m, source) {
			byTable[row.Table()] = append(byTable[row.Table()], row)
		}
	}
	for _, table := range rows.Tables() {
		name := table.Table()
		if len(byTable[name]) == 0 {
			continue
		}
		if err := s.insert(ctx, name, token(s.target.database, r, name), byTable[name]); err != nil {
			err = fmt.Errorf("insert %d rows of %s into %s: %w", len(byTable[name]), r, name, err)
			if ctx.Err() == nil {
				s.state(err)
			}
			return err
		}
		if s.inserted != nil {
			s.inserted(name, r)
		}
	}
	s.state(nil)
	return nil
}

func (s *sink) rowsOf(m kafka.Message, source rows.Source) []rows.Row {
	if s.replay != "" {
		return rows.OfReplay(s.replay, m.Body, source)
	}
	return rows.Of(m.Body, source)
}

// token names one range's rows of one table. ClickHouse drops an insert whose token the
// table knows, so it must be the same for the same rows and for no others. The topic's
// id tells a topic from a later one of the same name and offsets.
func token(database string, r kafka.Range, table string) string {
	return fmt.Sprintf("sluice/1/%s/%s/%s/%s", database, r.TopicID, r, table)
}

func (s *sink) insert(ctx context.Context, table, token string, all []rows.Row) error {
	ctx, cancel := context.WithTimeout(ctx, insertTimeout)
	defer cancel()
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{
		"insert_deduplicate":         1,
		"insert_deduplication_token": token,
		// An insert that was acknowledged must be there.
		"async_insert": 0,
		// One block for one token: cut in pieces, the pieces would need tokens.
		"max_insert_block_size":           1 << 30,
		"max_partitions_per_insert_block": 0,
	}))
	s.mu.Lock()
	conn := s.conn
	s.mu.Unlock()
	batch, err := conn.PrepareBatch(ctx, s.statements[table])
	if err != nil {
		return err
	}
	defer batch.Abort()
	for _, row := range all {
		if err := batch.AppendStruct(row); err != nil {
			return err
		}
	}
	return batch.Send()
}
