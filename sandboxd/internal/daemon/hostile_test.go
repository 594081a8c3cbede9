package daemon

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-rl/sluice/sandboxd/api"
)

// hostileCase is a program that means harm, and how it must end.
type hostileCase struct {
	name    string
	code    string
	timeout int64 // milliseconds; 0 is 20 s
	want    []api.Outcome
	check   func(t *testing.T, r api.Result)
}

func one(o ...api.Outcome) []api.Outcome { return o }

// prints checks stdout as a whole.
func prints(want string) func(*testing.T, api.Result) {
	return func(t *testing.T, r api.Result) {
		t.Helper()
		if got := r.Stdout.Text(); got != want {
			t.Errorf("stdout is %q, want %q", got, want)
		}
	}
}

func exits(code int, exception string) func(*testing.T, api.Result) {
	return func(t *testing.T, r api.Result) {
		t.Helper()
		if r.ExitCode != code || r.Exception != exception {
			t.Errorf("exit code %d, exception %q; want %d, %q", r.ExitCode, r.Exception, code, exception)
		}
	}
}

// attempts is a prelude: each try(label, function) prints what came of it, so
// that a case can demand that every attempt was refused.
const attempts = `
def attempt(label, f):
    try:
        got = f()
    except BaseException as e:
        print(label, "refused", type(e).__name__)
    else:
        print(label, "ALLOWED", repr(got)[:200])
`

// allRefused demands n attempts, none of them allowed.
func allRefused(n int) func(*testing.T, api.Result) {
	return func(t *testing.T, r api.Result) {
		t.Helper()
		out := r.Stdout.Text()
		if strings.Contains(out, "ALLOWED") || strings.Count(out, " refused ") != n {
			t.Errorf("want %d attempts, all refused; got:\n%s%s", n, out, r.Stderr.Text())
		}
	}
}

func hostileCases(tcpPort int, unixSocket, secretFile string) []hostileCase {
	return []hostileCase{
		{name: "4 GB allocation", code: "x = bytearray(4 << 30)\nprint(len(x))", want: one(api.OutOfMemory)},
		{name: "memory eaten bit by bit", code: "x = []\nwhile True: x.append(bytearray(1 << 20))", want: one(api.OutOfMemory)},
		{name: "memfd filled", code: "import os\nfd = os.memfd_create('x')\nwhile True: os.write(fd, b'x' * (1 << 20))", want: one(api.OutOfMemory)},
		{name: "tmpfs filled", code: "f = open('/tmp/x', 'wb')\nwhile True: f.write(b'x' * (1 << 20))",
			want: one(api.Error), check: exits(1, "OSError")},
		{name: "dev shm filled", code: "f = open('/dev/shm/x', 'wb')\nwhile True: f.write(b'x' * (1 << 20))",
			want: one(api.Error), check: exits(1, "OSError")},
		{name: "300,000 small files", timeout: 8000, code: "for i in range(300_000): open(f'/tmp/{i}', 'w').close()",
			want: one(api.Timeout, api.OutOfMemory)},
		{name: "fork bomb", timeout: 4000, code: "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
			want: one(api.Timeout, api.OutOfMemory)},
		{name: "thread bomb", code: "import threading, time\nfor i in range(100_000): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
			want: one(api.Error), check: exits(1, "RuntimeError")},
		{name: "while True", timeout: 1000, code: "while True: pass", want: one(api.Timeout)},
		{name: "sleep past the limit", timeout: 500, code: "import time; time.sleep(60)", want: one(api.Timeout)},
		{name: "SIGTERM ignored after a double fork", timeout: 1000, want: one(api.Timeout), code: `
import os, signal, time
for s in range(1, 65):
    try: signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError): pass
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True: time.sleep(1)
while True: time.sleep(1)`},
		{name: "a child outlives the program", code: "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(600)\nprint('parent')",
			want: one(api.OK), check: prints("parent\n")},
		{name: "10 GB printed", code: "s = 'x' * 1000\nfor i in range(10_000_000): print(s)", want: one(api.OutputLimit),
			check: func(t *testing.T, r api.Result) {
				if !r.Stdout.Truncated || len(r.Stdout.Kept) < 16<<10 || r.Stdout.Total < 16<<20 {
					t.Errorf("kept %d of %d bytes, truncated %v", len(r.Stdout.Kept), r.Stdout.Total, r.Stdout.Truncated)
				}
			}},
		{name: "one 100 MB line without newline", code: "import sys\nsys.stdout.write('x' * 100_000_000)", want: one(api.OutputLimit)},
		{name: "stderr flood", code: "import sys\nwhile True: sys.stderr.write('y' * 10_000)", want: one(api.OutputLimit)},
		{name: "10 MB of output is no crime", code: "print('x' * 10_000_000)", want: one(api.OK),
			check: func(t *testing.T, r api.Result) {
				if r.Stdout.Total != 10_000_001 || !strings.HasSuffix(r.Stdout.Text(), "xx\n") {
					t.Errorf("total %d, end %q", r.Stdout.Total, r.Stdout.Kept[len(r.Stdout.Kept)-5:])
				}
			}},
		{name: "symlink and proc walks", want: one(api.OK), check: allRefused(6), code: attempts + `
import os
os.symlink('/', '/tmp/root')
secret = ` + fmt.Sprintf("%q", secretFile) + `
attempt("symlink", lambda: open('/tmp/root' + secret).read())
attempt("direct", lambda: open(secret).read())
attempt("proc root", lambda: open('/proc/1/root' + secret).read())
attempt("proc cwd", lambda: open('/proc/self/cwd/../..' + secret).read())
attempt("dots", lambda: open('/tmp/../../../..' + secret).read())
attempt("host pids", lambda: [p for p in os.listdir('/proc') if p.isdigit() and int(p) > 1000][0])`},
		{name: "the host's users and files", want: one(api.OK), code: `
import os
print(open('/etc/passwd').read(), end='')
print(os.path.exists('/root'), os.path.exists('/home'), os.path.exists('/opt'), os.path.exists('/etc/shadow'), os.path.exists('/bin/sh'))
print(os.getuid(), os.getgid(), os.getgroups())`,
			check: prints("nobody:x:65534:65534:nobody:/tmp:/nonexistent\nFalse False False False False\n65534 65534 []\n")},
		{name: "the environment", code: "import os\nprint(sorted(os.environ))", want: one(api.OK), check: func(t *testing.T, r api.Result) {
			if strings.Contains(r.Stdout.Text(), "SANDBOXD_TEST_SECRET") {
				t.Errorf("the daemon's environment shows: %s", r.Stdout.Text())
			}
		}},
		{name: "writing where it must not", want: one(api.OK), check: allRefused(5), code: attempts + `
attempt("root", lambda: open('/x', 'w'))
attempt("usr", lambda: open('/usr/lib/x', 'w'))
attempt("etc", lambda: open('/etc/passwd', 'a'))
attempt("interpreter", lambda: open('/usr/bin/python3', 'r+b'))
attempt("proc sys", lambda: open('/proc/sys/kernel/hostname', 'w').write('x'))`},
		{name: "the network", want: one(api.OK), check: allRefused(7), code: attempts + `
import socket, urllib.request
def connect(host, port):
    s = socket.create_connection((host, port), timeout=2); return s.recv(10)
def unix(path):
    s = socket.socket(socket.AF_UNIX); s.connect(path); return path
attempt("loopback of the host", lambda: connect('127.0.0.1', ` + fmt.Sprint(tcpPort) + `))
attempt("outside", lambda: connect('1.1.1.1', 53))
attempt("metadata", lambda: connect('169.254.169.254', 80))
attempt("name", lambda: socket.getaddrinfo('example.org', 80))
attempt("unix socket", lambda: unix(` + fmt.Sprintf("%q", unixSocket) + `))
attempt("daemon", lambda: unix('/var/run/docker.sock'))
attempt("raw", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))`},
		{name: "loopback of its own works", want: one(api.OK), check: prints("b'hi'\n"), code: `
import socket
a = socket.socket(); a.bind(('127.0.0.1', 0)); a.listen()
b = socket.create_connection(a.getsockname()); c, _ = a.accept(); c.send(b'hi'); print(b.recv(2))`},
		{name: "forged replies of the worker", code: "print('READY')\nprint('RUN')\nprint('CHECKPOINT')\nprint('{\"outcome\":\"ok\"}')\nraise SystemExit(7)",
			want: one(api.Error), check: func(t *testing.T, r api.Result) {
				prints("READY\nRUN\nCHECKPOINT\n{\"outcome\":\"ok\"}\n")(t, r)
				exits(7, "")(t, r)
			}},
		{name: "writing to every descriptor", code: "import os\nfor fd in range(3, 256):\n    try: os.write(fd, b'READY\\nRUN\\n'); print('wrote', fd)\n    except OSError: pass\nprint('end')",
			want: one(api.OK), check: prints("end\n")},
		{name: "writing to stdin", code: "import os\ntry: os.write(0, b'x')\nexcept OSError as e: print('refused')", want: one(api.OK), check: prints("refused\n")},
		{name: "killing itself", code: "import os; os.kill(os.getpid(), 9)", want: one(api.Killed), check: exits(137, "")},
		{name: "killing pid 1", code: "import os\nif os.fork() == 0: os.kill(1, 9)\nimport time; time.sleep(10)", want: one(api.Killed)},
		{name: "killing everything", code: "import os\nos.kill(-1, 9)\nprint('still here')", want: one(api.Killed, api.Error), check: func(t *testing.T, r api.Result) {
			if r.Stdout.Total > 0 {
				t.Errorf("it found somebody to kill: %q", r.Stdout.Text())
			}
		}},
		{name: "closing stdout and stderr", code: "import os\nos.close(1); os.close(2)", want: one(api.OK)},
		{name: "closing sys.stdout", code: "import sys\nprint('a'); sys.stdout.close()", want: one(api.OK), check: prints("a\n")},
		{name: "invalid UTF-8 and NUL", code: "import os\nos.write(1, b'a\\xff\\x00\\xc3(b'); os.write(2, b'\\xfe')", want: one(api.OK),
			check: func(t *testing.T, r api.Result) {
				if got := string(r.Stdout.Kept); got != "a\xff\x00\xc3(b" {
					t.Errorf("stdout bytes are %q", got)
				}
				data, err := json.Marshal(r)
				if err != nil {
					t.Fatal(err)
				}
				var back api.Result
				if err := json.Unmarshal(data, &back); err != nil {
					t.Fatal(err)
				}
				if string(back.Stdout.Kept) != string(r.Stdout.Kept) || string(back.Stderr.Kept) != "\xfe" {
					t.Errorf("JSON lost bytes: %q %q", back.Stdout.Kept, back.Stderr.Kept)
				}
			}},
		{name: "a shell", want: one(api.OK), check: allRefused(3), code: attempts + `
import os, subprocess
attempt("sh", lambda: subprocess.run(['/bin/sh', '-c', 'id'], check=True))
attempt("bash", lambda: os.execv('/bin/bash', ['bash']))
attempt("system", lambda: 1 / (os.system('id') != 0 and 0))`},
		{name: "kernel privileges", want: one(api.OK), check: allRefused(9), code: attempts + `
import ctypes, os, time
libc = ctypes.CDLL(None, use_errno=True)
def must(n):
    if n != 0: raise OSError(ctypes.get_errno(), 'refused')
attempt("mount", lambda: must(libc.mount(b'none', b'/tmp', b'tmpfs', 0, None)))
attempt("umount", lambda: must(libc.umount2(b'/tmp', 2)))
attempt("chroot", lambda: os.chroot('/tmp'))
attempt("setuid", lambda: os.setuid(0))
attempt("clock", lambda: time.clock_settime(time.CLOCK_REALTIME, 0))
attempt("hostname", lambda: must(libc.sethostname(b'x', 1)))
attempt("module", lambda: must(libc.syscall(175, 0, 0, 0)))
attempt("bpf", lambda: must(libc.syscall(321, 0, 0, 0)))
attempt("device", lambda: os.mknod('/tmp/dev', 0o60666, os.makedev(8, 0)))`},
		{name: "namespaces and mounts of its own", want: one(api.OK), check: allRefused(17), code: attempts + `
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def call(f, *args):
    ctypes.set_errno(0)
    if f(*args) < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
for name, flag in (("user", 0x10000000), ("mount", 0x20000), ("uts", 0x4000000), ("ipc", 0x8000000), ("pid", 0x20000000), ("net", 0x40000000)):
    attempt("unshare " + name, lambda: call(libc.unshare, flag))
    attempt("clone " + name, lambda: call(libc.syscall, 56, flag | 17, 0, 0, 0, 0))
attempt("clone3", lambda: call(libc.syscall, 435, ctypes.create_string_buffer((0x10000000).to_bytes(8, "little") + bytes(56)), 64))
attempt("mount", lambda: call(libc.mount, b"tmpfs", b"/tmp", b"tmpfs", 0, b"size=4g"))
attempt("remount", lambda: call(libc.mount, b"none", b"/tmp", None, 32, b"size=4g"))
attempt("bind", lambda: call(libc.mount, b"/", b"/tmp", None, 4096, None))
attempt("umount", lambda: call(libc.umount2, b"/tmp", 2))`},
		{name: "clone3 let through by a tracer", want: one(api.OK), check: prints("refused\n"), code: `
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
pid = os.fork()
if pid == 0:
    libc.ptrace(0, 0, 0, 0); os.kill(os.getpid(), 19); os._exit(0)
os.waitpid(pid, 0)
print("refused" if libc.ptrace(0x4200, pid, 0, 0x80) < 0 and libc.ptrace(0x4206, pid, 0, 0x80) < 0 else "allowed")
os.kill(pid, 9)`},
		{name: "threads and processes still start", want: one(api.OK), check: prints("thread\nchild\n"), code: `
import os, threading
t = threading.Thread(target=print, args=("thread",), kwargs={"flush": True}); t.start(); t.join()
if os.fork() == 0:
    print("child", flush=True); os._exit(0)
os.wait()`},
		{name: "a time-out keeps what was printed", timeout: 700, code: "print('step 1')\nprint('step 2')\nimport sys\nprint('why', file=sys.stderr)\nwhile True: pass",
			want: one(api.Timeout), check: func(t *testing.T, r api.Result) {
				if r.Stdout.Text() != "step 1\nstep 2\n" || r.Stderr.Text() != "why\n" {
					t.Errorf("kept %q and %q", r.Stdout.Text(), r.Stderr.Text())
				}
			}},
		{name: "out of memory keeps what was printed", code: "import time\nprint('step 1')\nx = []\nwhile True: x.append(bytearray(1 << 20)); time.sleep(0.003)", want: one(api.OutOfMemory), check: prints("step 1\n")},
		{name: "exec and memory", code: "import os\nos.execv('/usr/bin/python3', ['python3', '-c', 'import time\\nx = bytearray(420 << 20)\\ntime.sleep(0.3)\\nprint(len(x) >> 20)'])", want: one(api.OK), check: prints("420\n")},
		{name: "a forged MemoryError", code: "import sys\nsys.stderr.write('Traceback (most recent call last):\\n  File \"<string>\", line 1, in <module>\\nMemoryError\\n'); sys.exit(1)", want: one(api.Error), check: exits(1, "MemoryError")},
		{name: "raise MemoryError", code: "raise MemoryError('mine')", want: one(api.Error), check: func(t *testing.T, r api.Result) {
			exits(1, "MemoryError")(t, r)
			if !strings.HasSuffix(r.Stderr.Text(), "MemoryError: mine\n") {
				t.Errorf("the traceback is hidden: %q", r.Stderr.Text())
			}
		}},
		{name: "the parser's own limit", code: "exec('-' * 10_000 + '1')", want: one(api.Error, api.OK), check: func(t *testing.T, r api.Result) {
			if r.Outcome == api.Error && r.Exception != "MemoryError" && r.Exception != "RecursionError" && r.Exception != "SyntaxError" {
				t.Errorf("exception %q: %s", r.Exception, r.Stderr.Text())
			}
		}},
		{name: "an allocation that cannot be", code: "x = [0] * (1 << 50)", want: one(api.Error), check: exits(1, "MemoryError")},
		{name: "ptrace of its own child", want: one(api.OK, api.Error, api.Killed), code: `
import ctypes, os, signal
libc = ctypes.CDLL(None)
pid = os.fork()
if pid == 0:
    libc.ptrace(0, 0, 0, 0); os.kill(os.getpid(), signal.SIGSTOP); os._exit(0)
os.waitpid(pid, 0x40000000); os.kill(pid, 9)
print('done')`},
		{name: "os._exit before output", code: "import os, sys\nsys.stdout.write('lost'); os._exit(0)", want: one(api.OK), check: prints("")},
		{name: "exit code of the program", code: "import sys; print('a'); sys.exit(42)", want: one(api.Error), check: func(t *testing.T, r api.Result) {
			prints("a\n")(t, r)
			exits(42, "")(t, r)
		}},
		{name: "exit codes that runtimes use", code: "import sys; sys.exit(128)", want: one(api.Error), check: exits(128, "")},
		{name: "sys.exit with text", code: "import sys; sys.exit('why')", want: one(api.Error), check: func(t *testing.T, r api.Result) {
			if r.Stderr.Text() != "why\n" || r.ExitCode != 1 {
				t.Errorf("stderr %q, code %d", r.Stderr.Text(), r.ExitCode)
			}
		}},
		{name: "SyntaxError", code: "def f(:", want: one(api.Error), check: exits(1, "SyntaxError")},
		{name: "a NUL byte in the source", code: "print(1)\x00", want: one(api.Error), check: func(t *testing.T, r api.Result) {
			if r.ExitCode != 1 {
				t.Errorf("exit code %d, want 1", r.ExitCode)
			}
		}},
		{name: "a 1 MB program", code: "x = '" + strings.Repeat("a", 1<<20) + "'\nprint(len(x))", want: one(api.OK), check: prints("1048576\n")},
		{name: "recursion without end", code: "def f(): f()\nf()", want: one(api.Error), check: exits(1, "RecursionError")},
		{name: "deep recursion allowed", code: "import sys\nsys.setrecursionlimit(10**9)\ndef f(n): return f(n + 1) + 1\nf(0)", want: one(api.Error, api.OutOfMemory)},
		{name: "segfault through ctypes", code: "import ctypes; ctypes.string_at(0)", want: one(api.Error), check: exits(139, "")},
		{name: "abort", code: "import os; os.abort()", want: one(api.Error), check: exits(134, "")},
		{name: "a missing module", code: "import no_such_module", want: one(api.Error), check: exits(1, "ModuleNotFoundError")},
		{name: "reading stdin", code: "import sys\nprint(repr(sys.stdin.read()))\ninput()", want: one(api.Error), check: func(t *testing.T, r api.Result) {
			prints("''\n")(t, r)
			exits(1, "EOFError")(t, r)
		}},
		{name: "huge integer to text", code: "print(10**10000)", want: one(api.Error), check: exits(1, "ValueError")},
		{name: "wrecking the interpreter", code: "import sys, builtins\nsys.excepthook = None\nsys.modules.clear()\nbuiltins.print = None\nraise ValueError('x')", want: one(api.Error)},
		{name: "wrecking the way out", code: "import os, threading\nos._exit = None\nthreading._shutdown = None\nprint('x')", want: one(api.OK, api.Error)},
		{name: "terminal escapes stay bytes", code: "print('\\x1b[2J\\x1b]0;x\\x07')", want: one(api.OK), check: prints("\x1b[2J\x1b]0;x\x07\n")},
		{name: "nothing at all", code: "", want: one(api.OK), check: prints("")},
	}
}

// Every hostile program ends as it must, the daemon goes on serving, and the
// sandbox is gone.
func TestHostile(t *testing.T) {
	t.Setenv("SANDBOXD_TEST_SECRET", "hunter2")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	socket := filepath.Join(os.TempDir(), fmt.Sprintf("sandboxd-hostile-%d.sock", os.Getpid()))
	unix, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("hunter2"), 0o644); err != nil {
		t.Fatal(err)
	}
	d := startDaemon(t)
	for _, c := range append(hostileCases(listener.Addr().(*net.TCPAddr).Port, socket, secret), moreHostileCases()...) {
		t.Run(c.name, func(t *testing.T) {
			timeout := c.timeout
			if timeout == 0 {
				timeout = 20_000
			}
			r := call(t, d, api.Request{Code: c.code, TimeoutMS: timeout, Label: c.name})
			if !slices.Contains(c.want, r.Outcome) {
				t.Errorf("outcome is %s (exit code %d, %s), want %v\nstdout: %.500s\nstderr: %.1000s",
					r.Outcome, r.ExitCode, r.Message, c.want, r.Stdout.Text(), r.Stderr.Text())
			}
			if c.check != nil {
				c.check(t, r)
			}
			if after := call(t, d, api.Request{Code: "print(6*7)"}); after.Outcome != api.OK || after.Stdout.Text() != "42\n" {
				t.Errorf("the next call got %s %q: the daemon must go on serving", after.Outcome, after.Stdout.Text())
			}
			goneWithoutTrace(t, d, r.SandboxID)
		})
	}
}
