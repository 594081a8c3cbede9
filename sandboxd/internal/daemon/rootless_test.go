package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/api"
	"github.com/sluice-rl/sluice/sandboxd/client"
)

// stranger is a user that owns nothing on this machine.
const stranger = 54321

// A daemon without root boots and restores sandboxes, and names what it lacks.
func TestRootless(t *testing.T) {
	runscPath := needGVisor(t)
	if out, err := asStranger(t.Context(), "/bin/sh", "-c", "unshare -Ur true").CombinedOutput(); err != nil {
		t.Skipf("needs unprivileged user namespaces: %v %s", err, out)
	}
	dir, err := os.MkdirTemp("", "sbd")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "sandboxd")
	if out, err := exec.Command("go", "build", "-o", binary, "../../cmd/sandboxd").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	// The stranger cannot reach into root's folders.
	copied := filepath.Join(dir, "runsc")
	if out, err := exec.Command("cp", runscPath, copied).CombinedOutput(); err != nil {
		t.Fatalf("copy runsc: %v\n%s", err, out)
	}
	for _, path := range []string{binary, copied, dir} {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	stateDir := filepath.Join(dir, "state")
	if err := os.Mkdir(stateDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(stateDir, stranger, stranger); err != nil {
		t.Fatal(err)
	}
	// The root file system is built by root, once, and can be read by anybody.
	cache := startDaemon(t).cfg.CacheDir
	cmd := asStranger(t.Context(), binary, "--state-dir="+stateDir, "--cache-dir="+cache, "--runsc="+copied, "--pool=bare=1")
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Config{Address: filepath.Join(stateDir, "sandboxd.sock")})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for deadline := time.Now().Add(2 * time.Minute); c.Ready(t.Context()) != nil; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not ready within two minutes")
		}
	}
	for _, tt := range []struct {
		code string
		cold bool
		want api.Outcome
	}{
		{"print(6*7)", false, api.OK}, {"print(6*7)", true, api.OK},
		{"while True: pass", false, api.Timeout}, {"x = bytearray(4 << 30)", false, api.OutOfMemory},
	} {
		patience := int64(30_000)
		if tt.want == api.Timeout {
			patience = 1000
		}
		r, err := c.Run(t.Context(), client.Request{Code: tt.code, Cold: tt.cold, TimeoutMS: patience})
		if err != nil {
			t.Fatal(err)
		}
		if r.Outcome != tt.want || r.Warm == tt.cold {
			t.Errorf("%s (cold %v): got %s, warm %v, %s; want %s", tt.code, tt.cold, r.Outcome, r.Warm, r.Message, tt.want)
		}
		if len(r.Protections.Missing) == 0 {
			t.Error("nothing is said to be missing")
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v, want 0", err)
	}
	if left := runtimesOf(stateDir); len(left) > 0 {
		t.Errorf("processes %v survive", left)
	}
}

func asStranger(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = []string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin", "HOME=/nonexistent"}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stranger, Gid: stranger}}
	return cmd
}

// Every kind of root file system runs programs, warm and cold.
func TestRoots(t *testing.T) {
	runscPath := needGVisor(t)
	first := startDaemon(t, "--root-format=dir") // builds the directory that the others take
	tree, err := filepath.Glob(filepath.Join(first.cfg.CacheDir, "host-????????????????"))
	if err != nil || len(tree) == 0 {
		t.Fatalf("no directory root in %s: %v", first.cfg.CacheDir, err)
	}
	for _, args := range [][]string{
		{"--root=dir:" + tree[0], "--root-format=dir"},
		{"--root=dir:" + tree[0], "--root-format=auto"},
	} {
		t.Run(strings.SplitN(args[0], ":", 2)[0]+args[1], func(t *testing.T) {
			d := startDaemon(t, append(args, "--runsc="+runscPath)...)
			for _, cold := range []bool{false, true} {
				r := call(t, d, api.Request{Code: "import os, numpy\nprint(numpy.arange(3).sum())\nopen('/usr/x', 'w')", Cold: cold})
				if r.Outcome != api.Error || r.Exception != "OSError" && r.Exception != "PermissionError" || r.Stdout.Text() != "3\n" {
					t.Errorf("cold %v: got %s %s %q, want numpy to work and the root to be read-only\n%s", cold, r.Outcome, r.Exception, r.Stdout.Text(), r.Stderr.Text())
				}
			}
		})
	}
}

// sandboxd run works without a daemon and leaves nothing behind.
func TestRunCommandAlone(t *testing.T) {
	runscPath := needGVisor(t)
	dir := t.TempDir()
	binary := filepath.Join(dir, "sandboxd")
	if out, err := exec.Command("go", "build", "-o", binary, "../../cmd/sandboxd").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	program := filepath.Join(dir, "p.py")
	stateDir := filepath.Join(dir, "state")
	run := func(code string, args ...string) (stdout, stderr string, exit int) {
		t.Helper()
		if err := os.WriteFile(program, []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append([]string{"run", "--runsc=" + runscPath, "--state-dir=" + stateDir, "--cache-dir=" + testConfig(t).CacheDir}, args...)
		cmd := exec.Command(binary, append(args, program)...)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		_ = cmd.Run()
		return out.String(), errs.String(), cmd.ProcessState.ExitCode()
	}
	if out, errs, exit := run("import sys\nprint('out')\nprint('err', file=sys.stderr)\nsys.exit(3)"); out != "out\n" || errs != "err\n" || exit != 3 {
		t.Errorf("got %q, %q, %d; want the program's own", out, errs, exit)
	}
	if _, _, exit := run("while True: pass", "--timeout", "1"); exit != 124 {
		t.Errorf("exit code %d after the time limit, want 124", exit)
	}
	out, _, exit := run("1/0", "--json")
	var got map[string]any
	if err := json.Unmarshal([]byte(out), &got); err != nil || exit != 0 {
		t.Fatalf("--json printed %q (%v), exit code %d", out, err, exit)
	}
	for _, key := range []string{"outcome", "exit_code", "exception", "stdout", "stderr", "wall_ms", "cpu_ms", "peak_memory_bytes", "queue_wait_ms", "warm", "image", "sandbox_id", "protections"} {
		if _, ok := got[key]; !ok {
			t.Errorf("--json lacks %s", key)
		}
	}
	if got["outcome"] != "error" || got["exception"] != "ZeroDivisionError" {
		t.Errorf("got %v", got)
	}
	if entries, _ := os.ReadDir(stateDir); len(entries) > 0 {
		t.Errorf("left %v in the state folder", entries)
	}
	if left := processesNaming(stateDir); len(left) > 0 {
		t.Errorf("processes %v survive", left)
	}
}
