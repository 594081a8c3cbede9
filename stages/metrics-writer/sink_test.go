package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
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
