package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/sluice-rl/sluice/schemas/clickhouse/clickhousetest"
	"github.com/sluice-rl/sluice/stages/internal/stage"
	"github.com/sluice-rl/sluice/topology/process"
)

// A server that is away from the start is told of like one that goes away later: once.
func TestAwayAtStartIsSaid(t *testing.T) {
	var out bytes.Buffer
	var told []error
	s := newSink(target{addrs: []string{"127.0.0.1:1"}, database: "d"}, slog.New(slog.NewTextHandler(&out, nil)), func(_ string, err error) { told = append(told, err) })
	if len(told) != 1 || told[0] == nil {
		t.Fatalf("before the first attempt the stage was told %v, want one reason not to be ready", told)
	}

	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := s.prepare(ctx, true); err == nil {
		t.Fatal("prepare succeeded without a server")
	}
	if n := strings.Count(out.String(), "ClickHouse cannot be used: waiting for it"); n != 1 {
		t.Errorf("said %d times that it waits, want once:\n%s", n, out.String())
	}

	s.state(nil)
	s.state(nil)
	if n := strings.Count(out.String(), "ClickHouse is there"); n != 1 || told[len(told)-1] != nil {
		t.Errorf("said %d times that the server is there, want once; last told %v", n, told[len(told)-1])
	}
	s.state(errors.New("gone"))
	if n := strings.Count(out.String(), "ClickHouse cannot be used"); n != 2 {
		t.Errorf("said %d times that it cannot be used, want twice:\n%s", n, out.String())
	}
}

// A server that turns the user away is not waited for, in the stage as in its command.
func TestARefusalAtStartEndsIt(t *testing.T) {
	// Over HTTP: libchdb's engine may abort after it turned a native client away.
	s := clickhousetest.Start(t)
	for user, password := range map[string]string{"writer": "wrong", "default": "", "reader": s.ReaderPassword} {
		var out bytes.Buffer
		env := &stage.Env{Log: slog.New(slog.NewTextHandler(&out, nil)), Health: &process.Health{}}
		c := config{migrate: true, target: target{addrs: []string{s.HTTP}, protocol: "http", database: "refused", user: user, password: password}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		err := run(ctx, env, c, nil)
		cancel()
		if !errors.Is(err, process.ErrUnusable) {
			t.Errorf("user %s: %v, want it to end as unusable", user, err)
		}
		if strings.Contains(out.String(), "waiting for it") {
			t.Errorf("user %s: it says that it waits:\n%s", user, out.String())
		}
		t.Setenv("SLUICE_CLICKHOUSE_PASSWORD", password)
		err = migrate(&out, "--clickhouse-addr", s.HTTP, "--clickhouse-protocol", "http", "--clickhouse-user", user, "--clickhouse-database", "refused")
		if !errors.Is(err, process.ErrUnusable) {
			t.Errorf("migrate as user %s: %v, want it to end as unusable", user, err)
		}
	}
}
