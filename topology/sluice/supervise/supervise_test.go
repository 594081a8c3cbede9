package supervise_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-rl/sluice/topology/sluice/supervise"
)

// said collects what a supervisor tells.
type said struct {
	mu    sync.Mutex
	lines []string
}

func (s *said) tell(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, text)
}

func (s *said) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "\n")
}

func newSupervisor(t *testing.T) (*supervise.Supervisor, *said) {
	t.Helper()
	var heard said
	s, err := supervise.New(supervise.Config{
		LogDir: t.TempDir(), Tell: heard.tell,
		FirstPause: 10 * time.Millisecond, LongestPause: 50 * time.Millisecond, Grace: 2 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.KillAll(); s.Close() })
	return s, &heard
}

// shell is a child that runs a script; $READY is its ready file.
func shell(t *testing.T, name, script string) supervise.Spec {
	ready := filepath.Join(t.TempDir(), name+".ready")
	return supervise.Spec{
		Name: name, Path: "/bin/sh", Env: append(os.Environ(), "READY="+ready), ReadyFile: ready,
		Args: func(map[string]string) []string { return []string{"-c", script} },
	}
}

const sayReady = `echo "{\"pid\":$$,\"kafka\":\"127.0.0.1:1\"}" > $READY.tmp; mv $READY.tmp $READY; `

func waitReady(t *testing.T, c *supervise.Child) map[string]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	addresses, err := c.WaitReady(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return addresses
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 2000 {
		if holds() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("never: %s", what)
}

func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(b), ") Z ")
}

func TestAKilledChildIsStartedAgainAndToldItsOldAddress(t *testing.T) {
	s, heard := newSupervisor(t)
	spec := shell(t, "broker", "")
	spec.Args = func(before map[string]string) []string {
		return []string{"-c", sayReady + "echo before=" + before["kafka"] + "; exec sleep 600"}
	}
	c := s.Start(spec)
	if got := waitReady(t, c)["kafka"]; got != "127.0.0.1:1" {
		t.Fatalf("address %q, want what the ready file says", got)
	}
	first := c.PID()
	syscall.Kill(first, syscall.SIGKILL)
	eventually(t, "another process", func() bool { pid := c.PID(); return pid != 0 && pid != first })
	eventually(t, "the old address in its arguments", func() bool {
		b, _ := os.ReadFile(c.LogPath())
		return strings.Contains(string(b), "before=127.0.0.1:1")
	})
	if !strings.Contains(heard.all(), "broker died (signal: killed); starting it again") {
		t.Errorf("it said %q, want that the broker died", heard.all())
	}
	if c.Restarts() != 1 {
		t.Errorf("%d restarts, want 1", c.Restarts())
	}
}

func TestExitStatusesThatEndTheWhole(t *testing.T) {
	for _, c := range []struct {
		name, script, says string
	}{
		{"wrong flags", `printf 'bad \033[31mflag\n'; exit 2`, `bad \x1b[31mflag`},
		{"unusable dependency", `echo broker too old; exit 3`, "broker too old"},
		{"never ready", `echo no luck; exit 1`, "died 5 times before it was ready"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := newSupervisor(t)
			child := s.Start(shell(t, "sampler", c.script))
			err := <-s.Failed()
			if !errors.Is(err, supervise.ErrChild) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want ErrChild saying %q", err, c.says)
			}
			if _, err := child.WaitReady(t.Context()); !errors.Is(err, supervise.ErrChild) {
				t.Errorf("WaitReady: %v, want ErrChild", err)
			}
		})
	}
}

func TestAChildThatCannotBeStartedEndsTheWhole(t *testing.T) {
	s, _ := newSupervisor(t)
	spec := shell(t, "sampler", "")
	spec.Path = "/no/such/binary"
	s.Start(spec)
	if err := <-s.Failed(); !strings.Contains(err.Error(), "/no/such/binary") {
		t.Errorf("got %v, want it to name the file", err)
	}
}

func TestADispensableChildEndsNothing(t *testing.T) {
	s, heard := newSupervisor(t)
	spec := shell(t, "pages", "exit 2")
	spec.Dispensable = true
	<-s.Start(spec).Finished()
	select {
	case err := <-s.Failed():
		t.Errorf("the whole failed: %v", err)
	default:
	}
	if !strings.Contains(heard.all(), "pages cannot be kept running") {
		t.Errorf("said %q, want that pages cannot be kept running", heard.all())
	}
}

func TestWorkThatIsDoneIsNotStartedAgain(t *testing.T) {
	s, _ := newSupervisor(t)
	spec := shell(t, "prompt-feeder", "exit 0")
	spec.Finishes = true
	c := s.Start(spec)
	<-c.Finished()
	if c.Err() != nil || c.Restarts() != 0 {
		t.Errorf("error %v, %d restarts; want none", c.Err(), c.Restarts())
	}
}

func TestChildrenStopInOrder(t *testing.T) {
	s, _ := newSupervisor(t)
	order := filepath.Join(t.TempDir(), "order")
	script := func(name string) string {
		return `trap 'echo ` + name + ` >> ` + order + `; exit 0' TERM; ` + sayReady + `while :; do sleep 0.02; done`
	}
	for _, name := range []string{"broker", "sampler", "prompt-feeder"} {
		waitReady(t, s.Start(shell(t, name, script(name))))
	}
	s.StopAll([]string{"prompt-feeder"}, []string{"sampler"})
	b, _ := os.ReadFile(order)
	if got := strings.Join(strings.Fields(string(b)), " "); got != "prompt-feeder sampler broker" {
		t.Errorf("stopped %q, want prompt-feeder sampler broker", got)
	}
}

func TestNothingIsLeft(t *testing.T) {
	s, heard := newSupervisor(t)
	// Deaf to SIGTERM, with a child in its group and one that left it.
	pids := filepath.Join(t.TempDir(), "pids")
	c := s.Start(shell(t, "sandboxd", `trap '' TERM; sleep 600 & echo $! >> `+pids+`; setsid sh -c 'echo $$ >> `+pids+`; exec sleep 600' & sleep 0.2; `+sayReady+`while :; do sleep 1; done`))
	waitReady(t, c)
	b, _ := os.ReadFile(pids)
	left := strings.Fields(string(b))
	if len(left) != 2 {
		t.Fatalf("the script started %q, want two processes", left)
	}
	s.StopAll()
	for _, p := range left {
		pid, _ := strconv.Atoi(p)
		if alive(pid) {
			t.Errorf("process %d is left", pid)
		}
	}
	if !strings.Contains(heard.all(), "did not stop within 2s: killed") {
		t.Errorf("it said %q, want that it had to kill", heard.all())
	}
}

func TestStoppingTwiceAndDuringAPause(t *testing.T) {
	s, _ := newSupervisor(t)
	c := s.Start(shell(t, "sampler", "exit 1"))
	c.Stop()
	c.Stop()
	select {
	case <-c.Finished():
	default:
		t.Error("Stop returned before the child had finished")
	}
}

func TestNothingIsStartedOnceAllWasStopped(t *testing.T) {
	s, _ := newSupervisor(t)
	s.StopAll()
	c := s.Start(shell(t, "late", sayReady+"exec sleep 600"))
	<-c.Finished()
	if pid := c.PID(); pid != 0 {
		t.Errorf("process %d runs, want none", pid)
	}
	if _, err := c.WaitReady(t.Context()); err == nil {
		t.Error("WaitReady of a child that never ran: no error")
	}
}

// If the supervisor itself is killed, the kernel ends its children.
func TestChildrenEndWithAKilledSupervisor(t *testing.T) {
	if os.Getenv("SLUICE_SUPERVISE_VICTIM") != "" {
		s, err := supervise.New(supervise.Config{LogDir: os.Getenv("SLUICE_SUPERVISE_VICTIM")})
		if err != nil {
			t.Fatal(err)
		}
		s.Start(supervise.Spec{Name: "stage", Path: "/bin/sh", Args: func(map[string]string) []string {
			return []string{"-c", "echo $$; exec sleep 600"}
		}})
		select {}
	}
	dir := t.TempDir()
	victim := exec.Command(os.Args[0], "-test.run", "^TestChildrenEndWithAKilledSupervisor$")
	victim.Env = append(os.Environ(), "SLUICE_SUPERVISE_VICTIM="+dir)
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	eventually(t, "the child's pid in its log", func() bool {
		b, _ := os.ReadFile(filepath.Join(dir, "stage.log"))
		pid, _ = strconv.Atoi(strings.TrimSpace(string(b)))
		return pid != 0
	})
	victim.Process.Kill()
	victim.Wait()
	eventually(t, "the child's end", func() bool { return !alive(pid) })
}

// As process 1, of a container for example, the supervisor inherits all that its
// children leave behind, and collects it: five hundred orphans leave no dead process
// and no descriptor.
func TestAsProcessOne(t *testing.T) {
	const orphans = 500
	if dir := os.Getenv("SLUICE_SUPERVISE_INIT"); dir != "" {
		s, err := supervise.New(supervise.Config{LogDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		s.Start(supervise.Spec{Name: "stage", Path: "/bin/sh", Args: func(map[string]string) []string {
			return []string{"-c", fmt.Sprintf("i=0; while [ $i -lt %d ]; do (sleep 0.1 &); i=$((i+1)); done; echo $$ done; exec sleep 600", orphans)}
		}})
		select {}
	}
	unshare, err := exec.LookPath("unshare")
	if err != nil || os.Geteuid() != 0 {
		if os.Getenv("CI") != "" {
			t.Fatalf("needs root and unshare: %v", err)
		}
		t.Skipf("needs root and unshare: %v", err)
	}
	dir := t.TempDir()
	cmd := exec.Command(unshare, "--pid", "--fork", "--mount-proc", "--kill-child", os.Args[0], "-test.run", "^TestAsProcessOne$")
	cmd.Env = append(os.Environ(), "SLUICE_SUPERVISE_INIT="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill() }()
	log := func() string {
		b, _ := os.ReadFile(filepath.Join(dir, "stage.log"))
		return string(b)
	}
	eventually(t, "its first child's end of the work", func() bool { return strings.Contains(log(), "done") })
	if pid := strings.Fields(log())[0]; len(pid) > 3 {
		t.Fatalf("the child's number is %s: the supervisor is not in a namespace of its own", pid)
	}
	initPID := 0
	eventually(t, "process 1", func() bool {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", cmd.Process.Pid, cmd.Process.Pid))
		initPID, _ = strconv.Atoi(strings.TrimSpace(string(b)))
		return initPID != 0
	})
	children := func() int {
		paths, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", initPID))
		n := 0
		for _, path := range paths {
			b, _ := os.ReadFile(path)
			n += len(strings.Fields(string(b)))
		}
		return n
	}
	eventually(t, "the collection of every orphan", func() bool { return children() == 1 })
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", initPID))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d orphans: %d children left, %d descriptors", orphans, children(), len(open))
	if len(open) > 20 {
		t.Errorf("process 1 has %d descriptors", len(open))
	}
}
