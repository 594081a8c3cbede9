package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait: a machine with two busy cores is slow, not broken.
const patience = 5 * time.Minute

// stalled is how long a run may show nothing new before it counts as hanging.
const stalled = 2 * time.Minute

// binary is the path of a built binary.
func binary(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(checkout(t), "bin", name)
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("%s is not built: run `make build`", path)
		}
		t.Skipf("%s is not built: `make build` builds it", path)
	}
	return path
}

// process is a binary that runs.
type process struct {
	t    testing.TB
	cmd  *exec.Cmd
	out  *output
	done chan struct{}
	err  error
}

// output collects what a process says.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// start runs a binary until the test ends.
func start(t testing.TB, name string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(binary(t, name), args...), out: &output{}, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.err = p.cmd.Wait(); close(p.done) }()
	t.Cleanup(func() {
		p.signal(syscall.SIGTERM)
		select {
		case <-p.done:
		case <-time.After(time.Minute):
			syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
			<-p.done
		}
	})
	return p
}

func (p *process) signal(s syscall.Signal) { p.cmd.Process.Signal(s) }

// status waits for the end and returns the exit status.
func (p *process) status(within time.Duration) int {
	p.t.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(within):
		p.t.Fatalf("%s runs on after %v; it said:\n%s", filepath.Base(p.cmd.Path), within, p.out)
		return -1
	}
}

// says waits until the process has said something.
func (p *process) says(text string) {
	p.t.Helper()
	p.until(fmt.Sprintf("%q said", text), func() bool { return strings.Contains(p.out.String(), text) })
}

// until waits while the process runs.
func (p *process) until(what string, holds func() bool) {
	p.t.Helper()
	deadline := time.Now().Add(patience)
	for !holds() {
		select {
		case <-p.done:
			if holds() {
				return
			}
			p.t.Fatalf("%s ended (%v) before: %s; it said:\n%s", filepath.Base(p.cmd.Path), p.err, what, p.out)
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("not within %v: %s; %s said:\n%s", patience, what, filepath.Base(p.cmd.Path), p.out)
		}
	}
}

// readyFile reads a ready file; ok is false while there is none.
func readyFile(path string) (content map[string]any, ok bool) {
	b, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(b, &content) != nil {
		return nil, false
	}
	return content, true
}

// startReady runs a binary and waits for its ready file.
func startReady(t testing.TB, name string, args ...string) (*process, map[string]any) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".json")
	p := start(t, name, append(args, "--ready-file", path)...)
	var content map[string]any
	p.until("ready", func() bool {
		var ok bool
		content, ok = readyFile(path)
		return ok
	})
	return p, content
}

// up is a `sluice up` on a directory.
type up struct {
	*process
	dir  string
	args []string
}

func startUp(t testing.TB, dir string, args ...string) *up {
	t.Helper()
	return &up{start(t, "sluice", append([]string{"up", "--plain", "--dir", dir}, args...)...), dir, args}
}

// pid is the process that serves as a stage now; 0 while none is ready.
func (u *up) pid(stage string) int {
	content, ok := readyFile(filepath.Join(u.dir, "ready", stage+".json"))
	if !ok {
		return 0
	}
	pid, _ := content["pid"].(float64)
	return int(pid)
}

// kill ends a stage by SIGKILL and waits until another process serves in its place.
func (u *up) kill(stage string) {
	u.t.Helper()
	var old int
	u.until(stage+" is ready", func() bool { old = u.pid(stage); return old != 0 })
	syscall.Kill(old, syscall.SIGKILL)
	u.until(stage+" was started again", func() bool { now := u.pid(stage); return now != 0 && now != old })
	u.t.Logf("killed %s (process %d), process %d took over", stage, old, u.pid(stage))
}

// runID is the run that the directory holds.
func (u *up) runID() string {
	u.t.Helper()
	var r struct {
		RunID string `json:"run_id"`
	}
	b, err := os.ReadFile(filepath.Join(u.dir, "run.json"))
	if err != nil {
		u.t.Fatal(err)
	}
	if err := json.Unmarshal(b, &r); err != nil {
		u.t.Fatal(err)
	}
	return r.RunID
}

// finished waits for a good end, for as long as the run moves. On a bad one it shows what
// the run waits for and the ends of the logs.
func (u *up) finished(within time.Duration) {
	u.t.Helper()
	deadline, shown, moved := time.Now().Add(within), len(u.out.String()), time.Now()
	for {
		select {
		case <-u.done:
			if u.err != nil {
				u.t.Fatalf("sluice up ended with %v; its output:\n%s\n%s", u.err, u.out, u.logs())
			}
			return
		case <-time.After(time.Second):
		}
		if n := len(u.out.String()); n != shown {
			shown, moved = n, time.Now()
		}
		if time.Since(moved) > stalled {
			u.t.Fatalf("sluice up has shown nothing new for %v. %s\nIts output:\n%s\n%s", stalled, u.waitsFor(), u.out, u.logs())
		}
		if time.Now().After(deadline) {
			u.t.Fatalf("sluice up did not finish within %v. %s\nIts output:\n%s\n%s", within, u.waitsFor(), u.out, u.logs())
		}
	}
}

// waitsFor is what `sluice status` says of a run.
func (u *up) waitsFor() string {
	var where []string
	for i, a := range u.args {
		if a == "--brokers" || a == "--namespace" {
			where = append(where, a, u.args[i+1])
		}
	}
	if content, ok := readyFile(filepath.Join(u.dir, "ready", "sluice-broker.json")); ok && len(where) == 0 {
		where = []string{"--brokers", fmt.Sprint(content["kafka"])}
	}
	out, err := exec.Command(binary(u.t, "sluice"), append([]string{"status"}, where...)...).CombinedOutput()
	return fmt.Sprintf("sluice status (%v):\n%s", err, out)
}

// logs is the end of every process's log.
func (u *up) logs() string {
	var b strings.Builder
	files, _ := filepath.Glob(filepath.Join(u.dir, "logs", "*.log"))
	for _, f := range files {
		text, _ := os.ReadFile(f)
		if len(text) > 2000 {
			text = text[len(text)-2000:]
		}
		fmt.Fprintf(&b, "--- %s\n%s\n", filepath.Base(f), text)
	}
	return b.String()
}

// processesOf lists what still runs with a path in its arguments.
func processesOf(path string) []string {
	var left []string
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil || !bytes.Contains(b, []byte(path)) {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(filepath.Dir(f), "stat"))
		if err != nil || bytes.Contains(stat, []byte(") Z ")) {
			continue
		}
		if pid := filepath.Base(filepath.Dir(f)); pid != fmt.Sprint(os.Getpid()) {
			left = append(left, pid+" "+string(bytes.ReplaceAll(b, []byte{0}, []byte{' '})))
		}
	}
	return left
}

// within is a context with the suite's patience.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}
