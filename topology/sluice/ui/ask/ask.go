package ask

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

var (
	// ErrAway occurs when ClickHouse does not answer.
	ErrAway = errors.New("ClickHouse does not answer")
	// ErrRefused occurs when ClickHouse will not run a statement: it is wrong, not
	// allowed, or takes more than its limits.
	ErrRefused = errors.New("ClickHouse refused")
	// ErrUnknown occurs when there is no question of a name, or a value of it is missing.
	ErrUnknown = errors.New("no such question")
	// ErrBusy occurs when too much was asked at once.
	ErrBusy = errors.New("too many questions at once")
)

// Limits of one statement.
type Limits struct {
	Time   time.Duration
	Memory int64 // bytes
	Rows   int   // of the answer; more are cut off
	Bytes  int   // of the answer, about; what is beyond is cut off
}

// Pages are the limits of named questions, SQL those of statements that people write.
var (
	Pages = Limits{Time: 20 * time.Second, Memory: 2 << 30, Rows: 20_000, Bytes: 64 << 20}
	SQL   = Limits{Time: 30 * time.Second, Memory: 1 << 30, Rows: 1000, Bytes: 8 << 20}
)

// How many statements run at a time, and how long others wait for them.
const (
	atOnce  = 4
	longest = 10 * time.Second
)

// Asker asks one database.
type Asker struct {
	conn      driver.Conn
	database  string
	questions map[string]question
	turn      chan struct{}
	byHand    chan struct{}
}

// New opens a connection, lazily: a ClickHouse that is away shows in the answers.
func New(o *ch.Options) (*Asker, error) {
	questions, err := load()
	if err != nil {
		return nil, err
	}
	o.MaxOpenConns, o.MaxIdleConns = atOnce+1, atOnce
	o.DialTimeout = 3 * time.Second
	o.ClientInfo = ch.ClientInfo{Products: []struct{ Name, Version string }{{Name: "sluice-ui"}}}
	conn, err := ch.Open(o)
	if err != nil {
		return nil, fmt.Errorf("ClickHouse: %w", err)
	}
	return &Asker{conn: conn, database: o.Auth.Database, questions: questions, turn: make(chan struct{}, atOnce), byHand: make(chan struct{}, 1)}, nil
}

// Close ends the connections.
func (a *Asker) Close() error { return a.conn.Close() }

// Named answers the question of a name with values for its parameters, one for each.
func (a *Asker) Named(ctx context.Context, name string, values map[string][]string) (Table, error) {
	q, ok := a.questions[name]
	if !ok {
		return Table{}, fmt.Errorf("%w: %q", ErrUnknown, name)
	}
	args, err := q.arguments(values)
	if err != nil {
		return Table{}, err
	}
	return a.run(ctx, a.turn, Pages, q.sql, args)
}

// Statement answers a statement that somebody wrote. Parameters are not filled in.
func (a *Asker) Statement(ctx context.Context, sql string) (Table, error) {
	if err := permitted(sql); err != nil {
		return Table{}, err
	}
	if own, why := a.Own(ctx); !own {
		return Table{}, fmt.Errorf("%w: %s", ErrRefused, why)
	}
	sql = strings.TrimSuffix(strings.TrimSpace(sql), ";")
	return a.run(ctx, a.byHand, SQL, sql, nil)
}

// Ping says whether ClickHouse answers.
func (a *Asker) Ping(ctx context.Context) error {
	if err := a.conn.Ping(ctx); err != nil {
		return explain(err)
	}
	return nil
}

func (a *Asker) run(ctx context.Context, turn chan struct{}, l Limits, sql string, args []any) (Table, error) {
	wait := time.NewTimer(longest)
	defer wait.Stop()
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return Table{}, ctx.Err()
	case <-wait.C:
		return Table{}, fmt.Errorf("%w: waited %v for the others", ErrBusy, longest)
	}
	// No deadline: the client would make max_execution_time of it, beyond what the user
	// may have.
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	late := time.AfterFunc(l.Time+2*time.Second, stop)
	defer late.Stop()
	began := time.Now()
	ctx = ch.Context(ctx, ch.WithSettings(ch.Settings{
		"max_execution_time": int(l.Time.Seconds()), "max_memory_usage": l.Memory, "max_threads": 2,
		// A few rows more than the limit show that there are more; the engine stops there.
		"max_result_rows": l.Rows + 1, "result_overflow_mode": "break",
	}))
	rows, err := a.conn.Query(ctx, sql, args...)
	if err != nil {
		return Table{}, explain(err)
	}
	defer func() { _ = rows.Close() }()
	t, err := read(rows, l)
	if err != nil {
		return Table{}, explain(err)
	}
	t.Milliseconds = float64(time.Since(began).Microseconds()) / 1000
	return t, nil
}

// scope is where the engine says the whole statement again.
var scope = regexp.MustCompile(`(?is)[:,]? in scope .*?( \([A-Z_]+\))`)

func brief(message string) string { return strings.TrimSpace(scope.ReplaceAllString(message, "$1")) }

// explain gives an error its class, and takes the stack of words off that the engine puts
// around its own.
func explain(err error) error {
	var said *ch.Exception
	switch {
	case errors.As(err, &said):
		return fmt.Errorf("%w: %s", ErrRefused, brief(said.Message))
	case strings.Contains(err.Error(), "DB::Exception"), strings.Contains(err.Error(), "code: "):
		// As HTTP brings them.
		_, text, _ := strings.Cut(err.Error(), "DB::Exception: ")
		if text == "" {
			text = err.Error()
		}
		return fmt.Errorf("%w: %s", ErrRefused, brief(text))
	case errors.Is(err, context.Canceled):
		return err
	}
	return fmt.Errorf("%w: %w", ErrAway, err)
}
