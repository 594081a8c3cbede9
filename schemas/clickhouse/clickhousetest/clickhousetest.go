// Package clickhousetest starts a real ClickHouse for tests: the binary
// sluice-clickhouse, built from this checkout, on a directory of the test's own.
//
// Where libchdb.so is absent (make tools fetches it) tests skip and say so; with CI set
// in the environment they fail instead.
package clickhousetest

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// Server is a running ClickHouse.
type Server struct {
	// HTTP and TCP are addresses, host:port.
	HTTP, TCP string
	// WriterPassword, ReaderPassword and PagesPassword belong to the users "writer",
	// "reader" and "pages".
	WriterPassword, ReaderPassword         string
	PagesPassword                          string
	WriterPasswordFile, ReaderPasswordFile string

	cmd *exec.Cmd
}

// Root is the checkout's top folder.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for dir != filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	t.Fatal("no go.mod above the working directory")
	return ""
}

// Library is the path of libchdb.so; without one the test skips, or fails under CI.
func Library(t testing.TB) string {
	t.Helper()
	path := os.Getenv("SLUICE_LIBCHDB")
	if path == "" {
		path = filepath.Join(Root(t), ".tools", "lib", "libchdb.so")
	}
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("libchdb.so is missing: %v: run make tools", err)
		}
		t.Skipf("libchdb.so is missing: %v: run make tools", err)
	}
	return path
}

// Build builds sluice-clickhouse and returns its path.
func Build(t testing.TB) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "sluice-clickhouse")
	cmd := exec.Command("go", "build", "-o", bin, "./topology/cmd/sluice-clickhouse")
	cmd.Dir = Root(t)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build sluice-clickhouse: %v\n%s", err, out)
	}
	return bin
}

// Start starts a server that stops with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	return StartAt(t, Build(t), t.TempDir(), "0", "0")
}

// StartAt starts the binary on a data directory and ports of the caller's choice.
func StartAt(t testing.TB, bin, dir, httpPort, tcpPort string) *Server {
	t.Helper()
	lib := Library(t)
	ready := filepath.Join(t.TempDir(), "ready")
	s := &Server{cmd: exec.Command(bin, "--data-dir", dir, "--lib", lib, "--http-port", httpPort, "--tcp-port", tcpPort, "--ready-file", ready)}
	var said strings.Builder
	s.cmd.Stderr = &said
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Stop()
		if t.Failed() {
			t.Logf("sluice-clickhouse said:\n%s", said.String())
		}
	})
	for deadline := time.Now().Add(time.Minute); ; {
		b, err := os.ReadFile(ready)
		if err == nil {
			var says map[string]any
			if err := json.Unmarshal(b, &says); err != nil {
				t.Fatalf("ready file: %v: %s", err, b)
			}
			str := func(key string) string { v, _ := says[key].(string); return v }
			s.HTTP, s.TCP = str("http"), str("tcp")
			s.WriterPasswordFile, s.ReaderPasswordFile = str("writer_password_file"), str("reader_password_file")
			s.WriterPassword, s.ReaderPassword = read(t, s.WriterPasswordFile), read(t, s.ReaderPasswordFile)
			s.PagesPassword = read(t, str("pages_password_file"))
			return s
		}
		if time.Now().After(deadline) || s.cmd.Process.Signal(syscall.Signal(0)) != nil {
			s.Stop()
			t.Fatalf("sluice-clickhouse did not get ready:\n%s", said.String())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// Stop stops the server cleanly. It may be called again.
func (s *Server) Stop() {
	if s.cmd.ProcessState != nil {
		return
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.cmd.Wait()
}

// Kill kills the server as kill -9 does.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// Options connect as the writer, over the native protocol or HTTP.
func (s *Server) Options(protocol clickhouse.Protocol, database string) *clickhouse.Options {
	addr := s.TCP
	if protocol == clickhouse.HTTP {
		addr = s.HTTP
	}
	return &clickhouse.Options{
		Protocol: protocol,
		Addr:     []string{addr},
		Auth:     clickhouse.Auth{Database: database, Username: "writer", Password: s.WriterPassword},
	}
}

// Open connects as the writer; the connection closes with the test.
func (s *Server) Open(t testing.TB, protocol clickhouse.Protocol, database string) driver.Conn {
	t.Helper()
	conn, err := clickhouse.Open(s.Options(protocol, database))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.Ping(context.Background()); err != nil {
		t.Fatal(err)
	}
	return conn
}
