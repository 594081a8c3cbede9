package daemon

import (
	"slices"
	"strings"
	"testing"

	"github.com/sluice-rl/sluice/sandboxd/api"
)

// stderrHas checks that stderr holds a text.
func stderrHas(want string) func(*testing.T, api.Result) {
	return func(t *testing.T, r api.Result) {
		t.Helper()
		if !strings.Contains(r.Stderr.Text(), want) {
			t.Errorf("stderr is %.500q, want %q in it", r.Stderr.Text(), want)
		}
	}
}

// both checks twice.
func both(checks ...func(*testing.T, api.Result)) func(*testing.T, api.Result) {
	return func(t *testing.T, r api.Result) {
		t.Helper()
		for _, check := range checks {
			check(t, r)
		}
	}
}

// moreHostileCases are of other kinds: what outlives a program or holds up its end,
// what takes memory that no process owns, and calls of the kernel that few programs
// make.
func moreHostileCases() []hostileCase {
	return []hostileCase{
		{name: "atexit that hangs", timeout: 1000, code: "import atexit, time\natexit.register(time.sleep, 600)\nprint('x')", want: one(api.Timeout), check: prints("x\n")},
		{name: "atexit that floods", code: "import atexit\ndef f():\n    while True: print('x' * 10_000)\natexit.register(f)", want: one(api.OutputLimit)},
		{name: "a thread that never ends", timeout: 1000, code: "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\nprint('x')", want: one(api.Timeout), check: prints("x\n")},
		{name: "a finalizer that hangs", timeout: 1000, code: "class A:\n    def __del__(s):\n        while True: pass\na = A()", want: one(api.Timeout)},
		{name: "a generator that never closes", timeout: 1500, code: "def g():\n    while True:\n        try: yield\n        except GeneratorExit:\n            while True: pass\nx = g(); next(x)", want: one(api.Timeout)},
		{name: "stopping itself", timeout: 1000, code: "import os, signal\nprint('x', flush=True)\nos.kill(os.getpid(), signal.SIGSTOP)", want: one(api.Timeout), check: prints("x\n")},
		{name: "a child that stops its parent", timeout: 1000, code: "import os, signal, time\nif os.fork() == 0:\n    time.sleep(0.1); os.kill(os.getppid(), signal.SIGSTOP); os._exit(0)\ntime.sleep(600)", want: one(api.Timeout)},
		{name: "signals to whatever is above it", code: "import os, signal\nfor pid in (os.getppid(), 0x7fffffff, 2, 3):\n    for s in (0, 9, 15, 19):\n        try:\n            if pid: os.kill(pid, s); print('sent', pid, s)\n        except OSError: pass\nprint('end')", want: one(api.OK), check: prints("end\n")},
		{name: "a fork bomb in sessions of their own", timeout: 3000, code: "import os\nwhile True:\n    try:\n        if os.fork() == 0: os.setsid()\n    except OSError: pass", want: one(api.Timeout, api.OutOfMemory)},
		{name: "children that are never waited for", code: "import os\nn = 0\ntry:\n    for n in range(5000):\n        if os.fork() == 0: os._exit(0)\nexcept OSError: pass\nprint(n < 4999)", want: one(api.OK), check: prints("True\n")},
		{name: "children that are waited for, thousands", timeout: 60_000, code: "import os\nfor n in range(300):\n    if os.fork() == 0: os._exit(0)\n    os.wait()\nprint(n)", want: one(api.OK), check: prints("299\n")},
		{name: "a subprocess left writing", code: "import os, time\nif os.fork() == 0:\n    os.setsid()\n    while True:\n        try: os.write(1, b'late\\n'); time.sleep(0.01)\n        except OSError: pass\nprint('first', flush=True)\ntime.sleep(0.05)", want: one(api.OK), check: func(t *testing.T, r api.Result) {
			if strings.ReplaceAll(r.Stdout.Text(), "late\n", "") != "first\n" {
				t.Errorf("stdout is %.200q", r.Stdout.Text())
			}
		}},
		{name: "stdout that does not block", code: "import fcntl, os\nfcntl.fcntl(1, fcntl.F_SETFL, os.O_NONBLOCK)\nn = 0\nfor i in range(2000):\n    try: n += os.write(1, b'x' * 4096)\n    except BlockingIOError: pass", want: one(api.OK, api.OutputLimit)},
		{name: "stdout by other names", code: "import os\nfor p in ('/proc/self/fd/1', '/dev/fd/1', '/dev/stdout', '/proc/1/fd/1'):\n    try:\n        with open(p, 'w') as f: f.write('READY 1\\nRUN\\n')\n    except OSError: pass\nprint('end')", want: one(api.OK), check: func(t *testing.T, r api.Result) {
			if !strings.HasSuffix(r.Stdout.Text(), "end\n") {
				t.Errorf("stdout is %q", r.Stdout.Text())
			}
		}},
		{name: "splice and sendfile to stdout", code: "import os\nopen('/tmp/x', 'w').write('abc\\n')\nfd = os.open('/tmp/x', 0)\ntry: os.sendfile(1, fd, 0, 4)\nexcept OSError: os.write(1, b'abc\\n')", want: one(api.OK), check: prints("abc\n")},
		{name: "every descriptor taken", code: "import os\nfds = []\ntry:\n    while True: fds.append(os.open('/dev/null', 0))\nexcept OSError as e: print(e.errno, len(fds) < 256)", want: one(api.OK), check: prints("24 True\n")},
		{name: "its own limits raised", want: one(api.OK), check: allRefused(4), code: attempts + `
import resource
for name in ("RLIMIT_NPROC", "RLIMIT_NOFILE", "RLIMIT_CORE", "RLIMIT_MEMLOCK"):
    r = getattr(resource, name)
    attempt(name, lambda: resource.setrlimit(r, (resource.getrlimit(r)[1] + 1,) * 2))`},
		{name: "a limit of its own on time", timeout: 10_000, code: "import resource\nt = resource.getrusage(resource.RUSAGE_SELF)\nresource.setrlimit(resource.RLIMIT_CPU, (int(t.ru_utime + t.ru_stime) + 1,) * 2)\nwhile True: pass", want: one(api.Killed, api.Error)},
		{name: "a limit of its own on memory", code: "import resource\nresource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\nx = bytearray(2 << 30)", want: one(api.Error), check: exits(1, "MemoryError")},
		{name: "a limit of its own on files", code: "import resource, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nresource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))\nf = open('/tmp/x', 'wb', 0)\nprint(f.write(b'x' * 10))\ntry: f.write(b'x')\nexcept OSError as e: print(e.errno)", want: one(api.OK), check: prints("10\n27\n")},
		// A better priority is gVisor's own affair: the host's scheduler never hears of it.
		{name: "real time", want: one(api.OK), check: allRefused(2), code: attempts + `
import os
attempt("first in, first out", lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50)))
attempt("in turns", lambda: os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(50)))`},
		{name: "kernel calls that few programs make", want: one(api.OK), check: allRefused(11), code: attempts + `
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def call(n, *args):
    ctypes.set_errno(0)
    if libc.syscall(n, *args) < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
buf = ctypes.create_string_buffer(4096)
for name, n, args in (("io_uring", 425, (8, buf)), ("perf", 298, (buf, 0, -1, -1, 0)), ("userfaultfd", 323, (0,)), ("kexec", 246, (0, 0, 0, 0)),
                      ("reboot", 169, (0xfee1dead, 672274793, 0x1234567, 0)), ("swapon", 167, (b"/tmp/x", 0)), ("iopl", 172, (3,)),
                      ("quotactl", 179, (0, 0, 0, 0)), ("acct", 163, (b"/tmp/x",)), ("open_by_handle", 304, (0, buf, 0)), ("process_vm_writev", 311, (0x7ffffffe, buf, 1, buf, 1, 0))):
    attempt(name, lambda: call(n, *args))`},
		{name: "sockets of other families", want: one(api.OK), check: allRefused(4), code: attempts + `
import socket
attempt("vsock", lambda: socket.socket(40, socket.SOCK_STREAM))
attempt("bluetooth", lambda: socket.socket(31, socket.SOCK_RAW))
attempt("alg", lambda: socket.socket(38, socket.SOCK_SEQPACKET))
attempt("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))`},
		{name: "devices", want: one(api.OK), check: allRefused(4), code: attempts + `
import os
for name in ("/dev/mem", "/dev/kmsg", "/dev/sda", "/dev/kvm"):
    attempt(name, lambda: open(name, "rb"))`},
		{name: "its own memory by proc", code: "import ctypes\nb = ctypes.create_string_buffer(b'before')\ntry:\n    with open('/proc/self/mem', 'r+b', 0) as f:\n        f.seek(ctypes.addressof(b)); f.write(b'after!')\nexcept OSError: b.value = b'after!'\nprint(b.value)", want: one(api.OK), check: prints("b'after!'\n")},
		{name: "its own code overwritten", code: "import ctypes, mmap\nlibc = ctypes.CDLL(None)\nlibc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]\na = ctypes.cast(libc.getpid, ctypes.c_void_p).value & ~4095\nlibc.mprotect(a, 4096, 7)\nctypes.memset(a, 0xcc, 4096)\nlibc.getpid()", want: one(api.Error), check: func(t *testing.T, r api.Result) {
			if r.ExitCode < 128 {
				t.Errorf("exit code %d", r.ExitCode)
			}
		}},
		{name: "the stack used up in C", code: "import ctypes\nf = ctypes.CFUNCTYPE(None)(lambda: g())\ndef g(): f()\nimport sys\nsys.setrecursionlimit(10**7)\ng()", want: one(api.Error, api.OutOfMemory)},
		{name: "faulthandler and a fault", code: "import faulthandler, ctypes\nfaulthandler.enable()\nctypes.string_at(0)", want: one(api.Error), check: both(exits(139, ""), stderrHas("Segmentation fault"))},
		{name: "a bus error", code: "import mmap, os\nfd = os.open('/tmp/x', os.O_RDWR | os.O_CREAT)\nos.ftruncate(fd, 8192)\nm = mmap.mmap(fd, 8192)\nos.ftruncate(fd, 0)\nprint(m[4096])", want: one(api.Error), check: exits(135, "")},
		{name: "a terabyte without a byte", code: "import mmap, os\nfd = os.open('/tmp/x', os.O_RDWR | os.O_CREAT)\nos.ftruncate(fd, 1 << 40)\nprint(os.fstat(fd).st_blocks)\ntry:\n    os.posix_fallocate(fd, 0, 1 << 40); print('allocated')\nexcept OSError: print('refused')", want: one(api.OK, api.Error, api.OutOfMemory), check: func(t *testing.T, r api.Result) {
			if strings.Contains(r.Stdout.Text(), "allocated") {
				t.Error("a terabyte was allocated")
			}
		}},
		{name: "memory in pipes and sockets", code: "import os, socket\nkeep = []\ntry:\n    while True:\n        a, b = socket.socketpair(); a.setblocking(False); keep.append((a, b))\n        try:\n            while True: a.send(b'x' * 65536)\n        except BlockingIOError: pass\nexcept OSError as e: print(e.errno)", want: one(api.OK, api.OutOfMemory)},
		{name: "descriptors in flight", code: "import array, os, socket\nn = 0\ntry:\n    while n < 100_000:\n        a, b = socket.socketpair()\n        socket.send_fds(a, [b'x'], [a.fileno(), b.fileno()] * 50)\n        os.close(a.detach()); os.close(b.detach()); n += 1\nexcept OSError: pass\nprint('end')", timeout: 10_000, want: one(api.OK, api.OutOfMemory, api.Timeout)},
		{name: "directories without end", timeout: 6000, code: "import os\nwhile True: os.mkdir('d'); os.chdir('d')", want: one(api.Timeout, api.OutOfMemory, api.Error)},
		{name: "extended attributes", code: "import os\nopen('/tmp/x', 'w').close()\nn = 0\ntry:\n    while n < 100_000: os.setxattr('/tmp/x', f'user.{n}', b'x' * 60_000); n += 1\nexcept OSError: pass\nprint('end')", timeout: 8000, want: one(api.OK, api.OutOfMemory, api.Timeout)},
		{name: "a FIFO that nobody opens", timeout: 1000, code: "import os\nos.mkfifo('/tmp/f')\nopen('/tmp/f')", want: one(api.Timeout)},
		{name: "a name that is too long", code: "open('x' * 5000)", want: one(api.Error), check: exits(1, "OSError")},
		{name: "links in a ring", code: "import os\nos.symlink('/tmp/b', '/tmp/a'); os.symlink('/tmp/a', '/tmp/b')\nos.listdir('/tmp/a')", want: one(api.Error), check: exits(1, "OSError")},
		{name: "shared memory of System V", code: "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.shmat.restype = ctypes.c_void_p\nlibc.shmat.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]\nwhile True:\n    i = libc.shmget(0, 64 << 20, 0o1600)\n    if i < 0: break\n    ctypes.memset(libc.shmat(i, None, 0), 1, 64 << 20)", want: one(api.OutOfMemory, api.OK, api.Error)},
		{name: "locked memory", code: "import ctypes\nprint(ctypes.CDLL(None).mlockall(3) != 0 or 'locked')\nx = []\nwhile True: x.append(bytearray(1 << 20))", want: one(api.OutOfMemory)},
		{name: "timers in great number", code: "import signal, threading\nts = []\ntry:\n    for _ in range(5000):\n        t = threading.Timer(600, print); t.daemon = True; t.start(); ts.append(t)\nexcept RuntimeError: print('refused')", want: one(api.OK), check: prints("refused\n")},
		{name: "a clock turned by hand", want: one(api.OK), check: allRefused(2), code: attempts + `
import ctypes, os, time
attempt("settime", lambda: time.clock_settime(time.CLOCK_REALTIME, 0))
def adjust():
    libc = ctypes.CDLL(None, use_errno=True)
    b = ctypes.create_string_buffer((0x0001).to_bytes(4, "little") + bytes(500))
    if libc.adjtimex(b) < 0: raise OSError(ctypes.get_errno(), "refused")
attempt("adjtimex", adjust)`},
		{name: "a broken locale in a child", code: "import os, subprocess, sys\nr = subprocess.run([sys.executable, '-c', 'print(\"\\u00e9\")'], env={'LC_ALL': 'nonsense', 'PYTHONIOENCODING': 'ascii:replace'}, capture_output=True)\nprint(r.stdout)", want: one(api.OK), check: prints("b'?\\n'\n")},
		{name: "2 GB of text", code: "s = 'x' * (2 << 30)\nprint(len(s))", want: one(api.OutOfMemory)},
		{name: "an end in the middle of a write", timeout: 3000, code: "import os, threading, time\ndef end():\n    time.sleep(0.2); os._exit(5)\nthreading.Thread(target=end).start()\nwhile True: print('x')", want: one(api.Error, api.OutputLimit)},
		{name: "an exec that fails late", code: "import os\ntry: os.execve('/usr/bin/python3', ['x' * 200_000], {})\nexcept OSError: print('refused')", want: one(api.OK), check: prints("refused\n")},
		{name: "exec without arguments", code: "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.execve(b'/usr/bin/python3', None, None)\nprint('back')", want: one(api.OK, api.Error, api.Killed)},
		{name: "exec of a script of its own", code: "import os\nopen('/tmp/s', 'w').write('#!/usr/bin/python3\\nprint(6*7)\\n')\nos.chmod('/tmp/s', 0o755)\nos.execv('/tmp/s', ['s'])", want: one(api.OK), check: prints("42\n")},
		{name: "a set-uid file of its own", code: "import os, shutil\nshutil.copy('/usr/bin/python3', '/tmp/p')\nos.chmod('/tmp/p', 0o6755)\nos.execv('/tmp/p', ['p', '-c', 'import os; print(os.geteuid() != 0)'])", want: one(api.OK), check: prints("True\n")},
		{name: "a million garbage cycles", code: "class A: pass\nfor _ in range(300_000):\n    a = A(); a.a = a\nprint('end')", want: one(api.OK), check: prints("end\n")},
		{name: "a regular expression without end", timeout: 1500, code: "import re\nprint('before')\nre.match('(a+)+$', 'a' * 60 + 'b')", want: one(api.Timeout)},
		{name: "a sum that does not end", timeout: 1500, code: "print('before', flush=True)\n10 ** 10 ** 9", want: one(api.Timeout), check: prints("before\n")},
	}
}

// Hostile programs one after another in one trajectory: each ends as it does in a
// sandbox of its own, and the next finds nothing of it.
func TestHostileInOneTrajectory(t *testing.T) {
	d := startDaemon(t, "--isolation=trajectory", "--pool=bare=2", "--kept-calls=1000")
	shared := 0
	for _, c := range moreHostileCases() {
		t.Run(c.name, func(t *testing.T) {
			timeout := c.timeout
			if timeout == 0 {
				timeout = 20_000
			}
			r := call(t, d, api.Request{Code: c.code, TimeoutMS: timeout, Label: c.name, Trajectory: "one"})
			if !slices.Contains(c.want, r.Outcome) {
				t.Errorf("outcome is %s (exit code %d, %s), want %v\nstdout: %.500s\nstderr: %.1000s", r.Outcome, r.ExitCode, r.Message, c.want, r.Stdout.Text(), r.Stderr.Text())
			}
			if c.check != nil {
				c.check(t, r)
			}
			next := call(t, d, api.Request{Code: "import os\nprint(os.listdir('/tmp'), len([p for p in os.listdir('/proc') if p.isdigit()]))", Trajectory: "one"})
			if next.Outcome != api.OK || next.Stdout.Text() != "[] 2\n" || len(next.Stderr.Kept) > 0 {
				t.Errorf("the next program ended as %s and printed %q %q", next.Outcome, next.Stdout.Text(), next.Stderr.Text())
			}
			if next.SandboxID == r.SandboxID {
				shared++
			}
		})
	}
	if shared < 20 {
		t.Errorf("only %d programs were followed by another in their sandbox", shared)
	}
}
