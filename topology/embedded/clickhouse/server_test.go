package clickhouse_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-rl/sluice/schemas/clickhouse/clickhousetest"
)

// process is a running sluice-clickhouse.
type process struct {
	cmd    *exec.Cmd
	stderr bytes.Buffer
	done   chan struct{}
	ready  map[string]any
}

func launch(t *testing.T, bin string, args ...string) *process {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ready")
	p := &process{cmd: exec.Command(bin, append([]string{"--lib", clickhousetest.Library(t), "--http-port", "0", "--tcp-port", "0", "--ready-file", file}, args...)...), done: make(chan struct{})}
	p.cmd.Stderr = &p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { defer close(p.done); _ = p.cmd.Wait() }()
	t.Cleanup(func() { _ = p.cmd.Process.Signal(syscall.SIGTERM); <-p.done })
	for {
		select {
		case <-p.done:
			return p
		case <-time.After(10 * time.Millisecond):
		}
		b, err := os.ReadFile(file)
		if err == nil {
			if err := json.Unmarshal(b, &p.ready); err != nil {
				t.Fatal(err)
			}
			return p
		}
	}
}

func (p *process) mustServe(t *testing.T) {
	t.Helper()
	if p.ready == nil {
		t.Fatalf("ended with status %d before it served:\n%s", p.cmd.ProcessState.ExitCode(), p.stderr.String())
	}
}

// mustRefuse checks that the process ended with the status and said all of words.
func (p *process) mustRefuse(t *testing.T, status int, words ...string) {
	t.Helper()
	if p.ready != nil {
		t.Fatal("it serves; want it to refuse")
	}
	if got := p.cmd.ProcessState.ExitCode(); got != status {
		t.Errorf("exit status %d, want %d", got, status)
	}
	for _, w := range words {
		if !strings.Contains(p.stderr.String(), w) {
			t.Errorf("it says nothing of %q:\n%s", w, p.stderr.String())
		}
	}
}

func (p *process) query(t *testing.T, user, sql string) (string, error) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, "http://"+p.ready["http"].(string)+"/", strings.NewReader(sql))
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true
	req.Header.Set("X-ClickHouse-User", user)
	if file, ok := p.ready[user+"_password_file"].(string); ok {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-ClickHouse-Key", strings.TrimSpace(string(b)))
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", errors.New(string(b))
	}
	return strings.TrimSpace(string(b)), nil
}

func (p *process) mustQuery(t *testing.T, user, sql string) string {
	t.Helper()
	out, err := p.query(t, user, sql)
	if err != nil {
		t.Fatalf("%s: %s: %v", user, sql, err)
	}
	return out
}

// engine is the pid of the engine process.
func (p *process) engine(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", p.cmd.Process.Pid, p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", p.cmd.Process.Pid))
	for _, task := range tasks {
		more, _ := os.ReadFile(task)
		b = append(b, more...)
	}
	for _, f := range strings.Fields(string(b)) {
		pid, err := strconv.Atoi(f)
		if err == nil {
			return pid
		}
	}
	// It died, or is not started yet: a pid that no process has.
	return 1 << 30
}

// gone waits until a process has ended.
func gone(pid int) bool {
	for range 1000 {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(b), ") Z ") {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

func (p *process) stop(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-p.done
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit status %d after SIGTERM, want 0:\n%s", code, p.stderr.String())
	}
}

func TestServer(t *testing.T) {
	clickhousetest.Library(t)
	bin := clickhousetest.Build(t)

	t.Run("rows and passwords outlive a clean stop, kill -9 of the engine and kill -9 of the parent", func(t *testing.T) {
		dir := t.TempDir()
		p := launch(t, bin, "--data-dir", dir)
		p.mustServe(t)
		password, err := os.ReadFile(filepath.Join(dir, "writer.password"))
		if err != nil {
			t.Fatal(err)
		}
		p.mustQuery(t, "writer", "CREATE DATABASE x ENGINE=Atomic")
		p.mustQuery(t, "writer", "CREATE TABLE x.t (n Int64) ENGINE=MergeTree ORDER BY n")
		p.mustQuery(t, "writer", "INSERT INTO x.t VALUES (1)")
		engine := p.engine(t)
		p.stop(t)
		if !gone(engine) {
			t.Error("the engine outlived a clean stop")
		}

		p = launch(t, bin, "--data-dir", dir)
		p.mustServe(t)
		p.mustQuery(t, "writer", "INSERT INTO x.t VALUES (2)")
		killed := p.engine(t)
		_ = syscall.Kill(killed, syscall.SIGKILL)
		for got := ""; got != "2"; {
			got, _ = p.query(t, "reader", "SELECT count() FROM x.t")
			select {
			case <-p.done:
				t.Fatalf("it ended with its engine, want another engine:\n%s", p.stderr.String())
			case <-time.After(10 * time.Millisecond):
			}
		}
		if p.engine(t) == killed {
			t.Error("the engine that was killed still runs")
		}
		p.stop(t)

		p = launch(t, bin, "--data-dir", dir)
		p.mustServe(t)
		p.mustQuery(t, "writer", "INSERT INTO x.t VALUES (3)")
		engine = p.engine(t)
		_ = p.cmd.Process.Kill()
		<-p.done
		if !gone(engine) {
			t.Fatal("the engine outlived its parent")
		}

		p = launch(t, bin, "--data-dir", dir)
		p.mustServe(t)
		if got := p.mustQuery(t, "reader", "SELECT groupArray(n) FROM (SELECT n FROM x.t ORDER BY n)"); got != "[1,2,3]" {
			t.Errorf("rows %s, want [1,2,3]", got)
		}
		after, _ := os.ReadFile(filepath.Join(dir, "writer.password"))
		if !bytes.Equal(password, after) {
			t.Error("the writer's password changed with a restart")
		}
	})

	t.Run("an engine that dies again and again", func(t *testing.T) {
		p := launch(t, bin, "--data-dir", t.TempDir())
		p.mustServe(t)
		for ended := false; !ended; {
			if _, err := p.query(t, "reader", "SELECT 1"); err == nil {
				_ = syscall.Kill(p.engine(t), syscall.SIGKILL)
			}
			select {
			case <-p.done:
				ended = true
			case <-time.After(20 * time.Millisecond):
			}
		}
		p.ready = nil
		p.mustRefuse(t, 1, "6 deaths of the engine", "killed")
	})

	t.Run("users may do what they are for and no more", func(t *testing.T) {
		p := launch(t, bin, "--data-dir", t.TempDir())
		p.mustServe(t)
		p.mustQuery(t, "writer", "CREATE DATABASE x ENGINE=Atomic")
		p.mustQuery(t, "writer", "CREATE TABLE x.t (n Int64) ENGINE=ReplacingMergeTree ORDER BY n SETTINGS non_replicated_deduplication_window=100")
		for _, c := range []struct{ user, sql string }{
			{"default", "SELECT * FROM file('/etc/passwd', 'LineAsString')"},
			{"default", "SELECT * FROM x.t"},
			{"default", "CREATE TABLE x.u (n Int64) ENGINE=MergeTree ORDER BY n"},
			{"default", "SELECT query FROM system.processes"},
			{"writer", "SELECT * FROM file('/etc/passwd', 'LineAsString')"},
			{"writer", "SELECT * FROM url('http://127.0.0.1/', 'LineAsString')"},
			{"writer", "CREATE TABLE x.f (s String) ENGINE=File('LineAsString', '/etc/passwd')"},
			{"writer", "KILL QUERY WHERE user = '' ASYNC"},
			{"reader", "INSERT INTO x.t VALUES (1)"},
			{"reader", "DROP TABLE x.t"},
			{"reader", "SELECT * FROM file('/etc/passwd', 'LineAsString')"},
			{"pages", "SELECT * FROM x.t"}, // another database than --pages-database
			{"pages", "SELECT * FROM file('/etc/passwd', 'LineAsString')"},
			{"pages", "SELECT * FROM url('http://127.0.0.1/', 'LineAsString')"},
			{"pages", "SELECT * FROM system.users"},
			{"pages", "CREATE TABLE sluice.t (n Int64) ENGINE=MergeTree ORDER BY n"},
		} {
			if out, err := p.query(t, c.user, c.sql); err == nil && out != "" || err != nil && !strings.Contains(err.Error(), "ACCESS_DENIED") && !strings.Contains(err.Error(), "READONLY") {
				t.Errorf("%s: %s: got %q, %v; want it refused", c.user, c.sql, out, err)
			}
		}
		p.mustQuery(t, "writer", "CREATE DATABASE sluice ENGINE=Atomic")
		p.mustQuery(t, "writer", "CREATE TABLE sluice.t (n Int64) ENGINE=ReplacingMergeTree ORDER BY n")
		if got := p.mustQuery(t, "pages", "SELECT count() FROM sluice.t SETTINGS max_execution_time = 5"); got != "0" {
			t.Errorf("pages reads %q, want 0", got)
		}
		for _, beyond := range []string{"max_execution_time = 0", "max_execution_time = 31", "max_memory_usage = 0", "max_threads = 3", "max_result_rows = 0", "priority = 0", "max_concurrent_queries_for_user = 0"} {
			if _, err := p.query(t, "pages", "SELECT 1 SETTINGS "+beyond); err == nil || !strings.Contains(err.Error(), "SETTING_CONSTRAINT_VIOLATION") {
				t.Errorf("pages: %s: %v; want it refused", beyond, err)
			}
		}
		for _, name := range []string{"writer", "reader", "pages"} {
			info, err := os.Stat(p.ready[name+"_password_file"].(string))
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s's password file: %v, %v; want mode 0600", name, info, err)
			}
		}
		for _, user := range []string{"writer ", "reader ", "stop"} {
			if _, err := p.query(t, strings.TrimSpace(user), "SELECT 1"); user != "stop" && err != nil {
				t.Errorf("%s: %v", user, err)
			} else if user == "stop" && err == nil {
				t.Error("stop needs no password")
			}
		}
		if os.Getuid() == 0 {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.engine(t)))
			if err != nil || strings.Contains(string(b), "Uid:\t0") || !strings.Contains(string(b), "CapEff:\t0000000000000000") || !strings.Contains(string(b), "NoNewPrivs:\t1") {
				t.Errorf("the engine keeps root's powers: %v\n%s", err, b)
			}
		}
	})

	t.Run("a directory that only root may enter", func(t *testing.T) {
		if os.Getuid() != 0 {
			t.Skip("needs root")
		}
		closed := filepath.Join(t.TempDir(), "closed")
		if err := os.Mkdir(closed, 0o700); err != nil {
			t.Fatal(err)
		}
		p := launch(t, bin, "--data-dir", filepath.Join(closed, "data"))
		p.mustServe(t)
		p.mustQuery(t, "writer", "CREATE DATABASE x ENGINE=Atomic")
		p.mustQuery(t, "writer", "CREATE TABLE x.t (n Int64) ENGINE=MergeTree ORDER BY n")
		p.mustQuery(t, "writer", "INSERT INTO x.t VALUES (7)")
		p.stop(t)
		p = launch(t, bin, "--data-dir", filepath.Join(closed, "data"))
		p.mustServe(t)
		if got := p.mustQuery(t, "reader", "SELECT n FROM x.t"); got != "7" {
			t.Errorf("read %q after a restart, want 7", got)
		}
	})

	t.Run("what is refused, and how", func(t *testing.T) {
		dir := t.TempDir()
		p := launch(t, bin, "--data-dir", dir)
		p.mustServe(t)
		launch(t, bin, "--data-dir", dir).mustRefuse(t, 3, "data directory in use", strconv.Itoa(p.cmd.Process.Pid))
		p.stop(t)

		marker := filepath.Join(dir, "SLUICE_CLICKHOUSE")
		for content, word := range map[string]string{
			`{"format":2}`:                         "format 2, this build reads up to 1",
			`{"format":1,"engine":"9999.1.1.1"}`:   "was written by ClickHouse 9999.1.1.1",
			`{"format":1,"engine":"26.7.3.stable"`: "is damaged",
		} {
			if err := os.WriteFile(marker, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
			launch(t, bin, "--data-dir", dir).mustRefuse(t, 3, word, "--data-dir")
		}

		foreign := t.TempDir()
		if err := os.WriteFile(filepath.Join(foreign, "letters.txt"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		launch(t, bin, "--data-dir", foreign).mustRefuse(t, 3, "letters.txt")

		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
		launch(t, bin, "--data-dir", t.TempDir(), "--http-port", port).mustRefuse(t, 1, "port in use", "--http-port "+port)
		launch(t, bin, "--data-dir", t.TempDir(), "--tcp-port", port).mustRefuse(t, 1, "port in use", "--tcp-port "+port)

		launch(t, bin, "--data-dir", t.TempDir(), "--lib", "/nonexistent/libchdb.so").mustRefuse(t, 3, "--lib", "make tools")
		notLibrary := filepath.Join(t.TempDir(), "libchdb.so")
		if err := os.WriteFile(notLibrary, []byte("text"), 0o644); err != nil {
			t.Fatal(err)
		}
		launch(t, bin, "--data-dir", t.TempDir(), "--lib", notLibrary).mustRefuse(t, 3, "engine unusable")
		launch(t, bin).mustRefuse(t, 2, "--data-dir is missing")
		launch(t, bin, "--data-dir", t.TempDir(), "--http-port", "-1").mustRefuse(t, 2, "--http-port is -1")
	})
}
