package daemon

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/api"
)

// Calls of one trajectory share a sandbox; another's, another owner's, and a call
// without a trajectory never do.
func TestTrajectoriesHaveSandboxesOfTheirOwn(t *testing.T) {
	d := startDaemon(t, "--isolation=trajectory", "--pool=bare=2", "--kept=2", "--kept-calls=3")
	used := map[string]string{} // by sandbox, whose it is
	run := func(owner, trajectory string, cold bool) api.Result {
		t.Helper()
		r := call(t, d, api.Request{Code: "print(1)", Owner: owner, Trajectory: trajectory, Cold: cold})
		if r.Outcome != api.OK || !strings.Contains(r.Protections.Isolation, "shared") {
			t.Fatalf("%s under %q: %s", r.Outcome, r.Protections.Isolation, r.Message)
		}
		who := strconv.Quote(owner) + strconv.Quote(trajectory) + strconv.FormatBool(cold)
		if whose, ok := used[r.SandboxID]; ok && whose != who || ok && r.SandboxCall == 1 {
			t.Errorf("sandbox %s of %s ran call %d of %s", r.SandboxID, whose, r.SandboxCall, who)
		}
		used[r.SandboxID] = who
		return r
	}
	for i, want := range []int{1, 2, 3, 1, 2} { // three calls are the most
		if r := run("", "a", false); r.SandboxCall != want {
			t.Errorf("call %d of the trajectory is the %d. in its sandbox, want %d", i, r.SandboxCall, want)
		}
	}
	for _, who := range [][2]string{{"", "b"}, {"x", "a"}, {"x", "b"}, {"", `a" "`}, {"", ""}, {"", ""}} {
		if r := run(who[0], who[1], false); r.SandboxCall != 1 {
			t.Errorf("%q is given a used sandbox", who)
		}
	}
	run("", "b", true)
	if r := run("", "a", false); r.SandboxCall != 1 {
		t.Errorf("more sandboxes are kept than allowed")
	}
	if h, _ := d.Health(); h.Kept < 1 || h.Kept > 2 {
		t.Errorf("%d sandboxes are kept, want 1 or 2", h.Kept)
	}
	var group sync.WaitGroup
	var mu sync.Mutex
	at := map[string]int{}
	for range 6 { // at once, each has one of its own
		group.Go(func() {
			r := call(t, d, api.Request{Code: "import time; time.sleep(1)", Trajectory: "c"})
			mu.Lock()
			at[r.SandboxID]++
			mu.Unlock()
		})
	}
	group.Wait()
	if len(at) < 4 { // four slots
		t.Errorf("calls that run at once share sandboxes: %v", at)
	}
}

func TestSandboxesOfTrajectoriesAreNotKeptForEver(t *testing.T) {
	d := startDaemon(t, "--isolation=trajectory", "--pool=bare=1", "--kept-idle=1ms")
	id := call(t, d, api.Request{Code: "print(1)", Trajectory: "a"}).SandboxID
	for deadline := time.Now().Add(20 * time.Second); d.Service().Kept() > 0 || len(processesNaming(id)) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it is still kept")
		}
	}
	goneWithoutTrace(t, d, id)
}

// prelude is for programs that call the C library.
const prelude = `
import ctypes, errno, fcntl, mmap, os, resource, signal, socket, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def tried(f, *args):
    try:
        f(*args)
        return "done"
    except OSError as e:
        return errno.errorcode[e.errno]
def daemon():
    if os.fork():
        return False
    os.setsid()
    if os.fork():
        os._exit(0)
    return True
`

// What a call leaves behind, and what the next one of its trajectory finds.
func TestWhatACallLeavesItsTrajectory(t *testing.T) {
	d := startDaemon(t, "--isolation=trajectory", "--pool=bare=2", "--kept-calls=1000")
	for i, tt := range []struct {
		name, first, second, want string
	}{
		{"files", "open('/tmp/x', 'w').write('x'); open('/dev/shm/y', 'w').write('y')", "print(os.listdir('/tmp'), os.listdir('/dev/shm'))", "[] []"},
		{"a full disk", "f = open('/tmp/x', 'wb')\ntry:\n    while True: f.write(b'x' * 65536)\nexcept OSError: pass", "print(open('/tmp/x', 'wb').write(b'x' * (8 << 20)))", "8388608"},
		{"a process that writes what the worker writes",
			"if daemon():\n    while True:\n        for f in (1, 2): os.write(f, b'READY 1\\nRUN\\nCLEAN 00000000000000000000000000000000\\nREADY 7\\nRUN\\nforged\\n')",
			"print('mine')", "mine"},
		{"processes that take no signal", "for _ in range(8):\n    if os.fork() == 0:\n        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())\n        while True: pass", "print(sorted(int(p) for p in os.listdir('/proc') if p.isdigit()) == [1, os.getpid()])", "True"},
		{"stopped processes", "for _ in range(5):\n    if os.fork() == 0: os.kill(os.getpid(), signal.SIGSTOP)", "print(len([p for p in os.listdir('/proc') if p.isdigit()]))", "2"},
		{"a fork bomb", "resource.setrlimit(resource.RLIMIT_NPROC, (20, 20))\ntry:\n    while True: os.fork()\nexcept OSError: pass", "pid = os.fork()\nif pid == 0: os._exit(3)\nprint(os.waitpid(pid, 0)[1])", "768"},
		{"shared memory of System V", "print(libc.shmget(0x42, 4096, 0o1666) >= 0)", "print(libc.shmget(0x42, 4096, 0o666), errno.errorcode[ctypes.get_errno()])", "-1 ENOENT"},
		{"semaphores", "print(libc.semget(0x42, 1, 0o1666) >= 0)", "print(libc.semget(0x42, 1, 0o666), errno.errorcode[ctypes.get_errno()])", "-1 ENOENT"},
		{"message queues", "print(libc.msgget(0x42, 0o1666) >= 0)", "print(libc.msgget(0x42, 0o666), errno.errorcode[ctypes.get_errno()])", "-1 ENOENT"},
		{"an abstract socket", "s = socket.socket(socket.AF_UNIX)\ns.bind('\\0x'); s.listen()\nif daemon(): time.sleep(60)", "print(tried(socket.socket(socket.AF_UNIX).connect, '\\0x'))", "ECONNREFUSED"},
		{"a listener", "s = socket.create_server(('127.0.0.1', 4242))\nif daemon(): time.sleep(60)", "print(tried(socket.create_connection, ('127.0.0.1', 4242)))", "ECONNREFUSED"},
		{"limits", "resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20)); resource.setrlimit(resource.RLIMIT_CPU, (900, 900))", "print(resource.getrlimit(resource.RLIMIT_NOFILE), resource.getrlimit(resource.RLIMIT_CPU))", "(256, 256) (-1, -1)"},
		{"flags of the streams", "for f in (1, 2): fcntl.fcntl(f, fcntl.F_SETFL, fcntl.fcntl(f, fcntl.F_GETFL) | os.O_NONBLOCK | os.O_ASYNC)", "print([os.get_blocking(f) for f in (1, 2)], fcntl.fcntl(1, fcntl.F_GETFL) & os.O_ASYNC)", "[True, True] 0"},
		{"closed and exchanged streams", "r, w = os.pipe(); os.dup2(w, 1); os.dup2(w, 2); os.close(0)", "print(os.read(0, 1), sys.stdin.read() == '')", "b'' True"},
		{"priority and mask", "os.nice(5); os.umask(0); os.chdir('/')", "print(os.getpriority(os.PRIO_PROCESS, 0), oct(os.umask(0)), os.getcwd())", "0 0o22 /tmp"},
		{"signals", "for s in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGINT): signal.signal(s, signal.SIG_IGN)\nsignal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())", "print(signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL, signal.pthread_sigmask(signal.SIG_BLOCK, []))", "True set()"},
		{"a lock on a file of the root", "f = open(sys.executable)\nfcntl.flock(f, fcntl.LOCK_EX)\nif daemon(): time.sleep(60)", "print(tried(fcntl.flock, open(sys.executable), fcntl.LOCK_EX | fcntl.LOCK_NB))", "done"},
		{"a signal to everybody", "os.kill(-1, signal.SIGKILL)", "print(1)", "1"},
		{"its own death", "os.kill(os.getpid(), signal.SIGSEGV)", "print(1)", "1"},
		{"changed modules", "sys.modules['os'].getcwd = None; sys.path[:] = []; import builtins; builtins.len = None", "print(os.getcwd(), len('x'))", "/tmp 1"},
		{"random numbers", "", "import random; a = random.random()\nprint(a)", "*"},
		{"a message to the first process", "libc.prctl(4, 0)\nfor s in range(1, 65): tried(os.kill, 1, s)\ntried(os.setpriority, os.PRIO_PROCESS, 1, 19)\ntried(resource.prlimit, 1, resource.RLIMIT_NOFILE, (3, 3)) if hasattr(resource, 'prlimit') else 0\nos.sched_setaffinity(0, {0})", "print(tried(os.kill, 1, 9), tried(open, '/proc/1/mem', 'r+b'), tried(os.listdir, '/proc/1/fd'), tried(os.readlink, '/proc/1/exe'))", "EPERM EACCES EACCES EACCES"},
		{"a tracer", "print(libc.ptrace(16, 1, 0, 0), libc.ptrace(0x4206, 1, 0, 0))", "print(libc.ptrace(16, 1, 0, 0))", "-1"},
		{"its capabilities", "", "print([l.split()[1] for l in open('/proc/self/status') if l[:6] in ('CapInh', 'CapPrm', 'CapEff', 'CapAmb')], os.getresuid()[0] == os.getuid() >= 100000, os.getgroups())", "['0000000000000000', '0000000000000000', '0000000000000000', '0000000000000000'] True []"},
		{"ways to be root", "", "print(tried(os.setuid, 0), tried(os.seteuid, 65534), tried(os.setgroups, [0]), libc.unshare(0x10000000), libc.unshare(0x20000), libc.mount(b'tmpfs', b'/tmp', b'tmpfs', 0, b''), libc.umount2(b'/tmp', 2))", "EPERM EPERM EPERM -1 -1 -1 -1"},
		{"the name of the machine", "print(libc.sethostname(b'x', 1))", "print(socket.gethostname())", "sandbox"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			trajectory := strconv.Itoa(i)
			first := call(t, d, api.Request{Code: prelude + tt.first, Trajectory: trajectory, TimeoutMS: 20_000})
			if first.Outcome != api.OK && first.Outcome != api.Killed && first.Outcome != api.Error {
				t.Errorf("the first ended as %s: %s %s", first.Outcome, first.Message, first.Stderr.Text())
			}
			second := call(t, d, api.Request{Code: prelude + tt.second, Trajectory: trajectory, TimeoutMS: 20_000})
			if second.SandboxID != first.SandboxID {
				t.Errorf("the second had another sandbox; the first ended as %s %s", first.Outcome, first.Message)
			}
			got := strings.TrimSuffix(second.Stdout.Text(), "\n")
			if second.Outcome != api.OK || got != tt.want && tt.want != "*" || len(second.Stderr.Kept) > 0 {
				t.Errorf("the second finds %q, want %q: %s %s; the first printed %q", got, tt.want, second.Outcome, second.Stderr.Text(), first.Stdout.Text()+first.Stderr.Text())
			}
			third := call(t, d, api.Request{Code: prelude + tt.second, Trajectory: trajectory + "other", TimeoutMS: 20_000})
			if other := strings.TrimSuffix(third.Stdout.Text(), "\n"); third.SandboxID == first.SandboxID || tt.want == "*" && other == got {
				t.Errorf("another trajectory had sandbox %s and finds %q", third.SandboxID, other)
			}
		})
	}
}

// A program that had to be ended takes its sandbox along.
func TestATrajectoryGoesOnInAnotherSandbox(t *testing.T) {
	d := startDaemon(t, "--isolation=trajectory", "--pool=bare=2", "--output-limit=1MiB")
	for want, code := range map[api.Outcome]string{
		api.Timeout: "print('so far')\nwhile True: pass", api.OutputLimit: "while True: print('x' * 1000)", api.OutOfMemory: "x = bytearray(4 << 30)\nfor i in range(0, len(x), 4096): x[i] = 1",
	} {
		first := call(t, d, api.Request{Code: code, Trajectory: string(want), TimeoutMS: 2000})
		if first.Outcome != want {
			t.Errorf("got %s, want %s: %s", first.Outcome, want, first.Stderr.Text())
		}
		if want == api.Timeout && first.Stdout.Text() != "so far\n" {
			t.Errorf("of a program that ran too long %q is kept", first.Stdout.Text())
		}
		second := call(t, d, api.Request{Code: "print(1)", Trajectory: string(want)})
		if second.Outcome != api.OK || second.SandboxID == first.SandboxID || second.SandboxCall != 1 {
			t.Errorf("after %s: %s in %s, call %d; before in %s", want, second.Outcome, second.SandboxID, second.SandboxCall, first.SandboxID)
		}
	}
}

// A secret of one program is not in the memory of the next.
func TestMemoryOfTheCallBefore(t *testing.T) {
	d := startDaemon(t, "--isolation=trajectory", "--pool=bare=1")
	const scan = `
found = 0
for line in open('/proc/self/maps'):
    span, mode = line.split()[:2]
    if 'r' not in mode or '[v' in line: continue
    a, b = (int(x, 16) for x in span.split('-'))
    with open('/proc/self/mem', 'rb') as f:
        try:
            f.seek(a); found += f.read(b - a).count(bytes(c ^ 1 for c in NEEDLE))
        except OSError: pass
print(found > 0)
`
	// The needle is "a secret of the first", with the lowest bit of each letter turned.
	needle := []byte("a secret of the first")
	for i := range needle {
		needle[i] ^= 1
	}
	program := "NEEDLE = bytes(" + bytesText(needle) + ")\n" + scan
	own := call(t, d, api.Request{Code: "SECRET = 'a secret of the first' * 100\n" + program, Trajectory: "a", TimeoutMS: 20_000})
	if own.Stdout.Text() != "True\n" {
		t.Fatalf("the program does not find its own secret: %s %s", own.Stdout.Text(), own.Stderr.Text())
	}
	next := call(t, d, api.Request{Code: program, Trajectory: "a", TimeoutMS: 20_000})
	if next.Stdout.Text() != "False\n" || next.SandboxID != own.SandboxID {
		t.Errorf("the next program finds %q in its memory (sandbox %s after %s) %s", next.Stdout.Text(), next.SandboxID, own.SandboxID, next.Stderr.Text())
	}
}

func bytesText(b []byte) string {
	var out []string
	for _, c := range b {
		out = append(out, strconv.Itoa(int(c)))
	}
	return "[" + strings.Join(out, ",") + "]"
}
