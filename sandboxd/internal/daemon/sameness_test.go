package daemon

import (
	"maps"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-rl/sluice/sandboxd/api"
	"github.com/sluice-rl/sluice/sandboxd/internal/gvisor/bundle"
)

// seen is what a program's caller can tell about it.
type seen struct {
	Outcome        api.Outcome
	ExitCode       int
	Exception      string
	Stdout, Stderr string
}

func what(r api.Result) seen {
	return seen{r.Outcome, r.ExitCode, r.Exception, r.Stdout.Text(), r.Stderr.Text()}
}

// corpus are programs whose behaviour must not depend on where they run.
var corpus = map[string]string{
	"name, argv and file":        "import sys\nprint(__name__, sys.argv, sys.orig_argv, '__file__' in globals(), sys.path[0] == '', sorted(globals()))",
	"a traceback":                "def f(x):\n    return 1 / x\n\nf(0)",
	"a chained traceback":        "try:\n    {}['a']\nexcept KeyError as e:\n    raise ValueError('b') from e",
	"an exception group":         "raise ExceptionGroup('g', [ValueError(1), TypeError(2)])",
	"a traceback in numpy":       "import numpy as np\nnp.linalg.inv(np.zeros((2, 2)))",
	"a traceback in sympy":       "import sympy\nsympy.sympify('1 +')",
	"a syntax error":             "x = (1,\ny = 2",
	"an indentation error":       "if True:\nprint(1)",
	"a warning":                  "import warnings\nwarnings.warn('w')",
	"exit status":                "raise SystemExit(3)",
	"exit without status":        "exit()",
	"exit text":                  "import sys\nsys.exit('bye')",
	"keyboard interrupt":         "raise KeyboardInterrupt",
	"atexit":                     "import atexit\natexit.register(print, 'last')\nprint('first')",
	"finalizers":                 "class A:\n    def __del__(self): print('gone')\na = A()\nprint('end')",
	"a thread outlives":          "import threading, time\ndef f():\n    time.sleep(0.05)\n    print('thread')\nthreading.Thread(target=f).start()\nprint('main')",
	"an exception in thread":     "import threading\nt = threading.Thread(target=lambda: 1/0, name='t')\nt.start(); t.join()\nprint('main')",
	"own excepthook":             "import sys\nsys.excepthook = lambda *a: print('hook', a[0].__name__)\n1/0",
	"imports":                    "import sympy\nprint(sympy.__version__)\nprint('numpy' in globals())",
	"pickle of own class":        "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))).__module__)",
	"source of itself":           "import inspect\ndef f(): return 1\nprint(inspect.getsource(f))",
	"future annotations":         "from __future__ import annotations\ndef f(x: nowhere): pass\nprint(f.__annotations__)",
	"sets of text":               "print({'a', 'b', 'c', 'd'}, hash('x'))",
	"own module in cwd":          "open('m.py', 'w').write('x = 1')\nimport m\nprint(m.x)",
	"unprintable":                "print('\\ud800')",
	"dataclass":                  "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\nprint(P(1))",
	"process":                    "import multiprocessing as mp\ndef f(x): return x * x\nif __name__ == '__main__':\n    with mp.get_context('fork').Pool(2) as p: print(p.map(f, [1, 2, 3]))",
	"limits":                     "import resource\nprint([resource.getrlimit(getattr(resource, r)) for r in ('RLIMIT_NPROC', 'RLIMIT_NOFILE', 'RLIMIT_CORE')])",
	"numbers":                    "import sys, locale\nprint(sys.getrecursionlimit(), sys.stdout.encoding, sys.stdout.errors, sys.flags, locale.getlocale())",
	"decimal's flags":            "import decimal\nc = decimal.getcontext()\nprint(c, [f for f in c.flags if c.flags[f]])",
	"numpy's and other state":    "import numpy as np, sys, gc, threading\nprint(np.geterr(), sys.getrecursionlimit(), gc.isenabled(), gc.get_threshold(), threading.active_count())",
	"the stack":                  "import inspect, traceback, sys\ndef f():\n    print([x.function for x in inspect.stack()])\n    print(sys._getframe(1).f_back)\n    traceback.print_stack()\nf()",
	"a stack too deep":           "import sys\ntry: sys._getframe(1)\nexcept ValueError as e: print(e)",
	"frames of an exception":     "try: 1/0\nexcept ZeroDivisionError as e:\n    t, n = e.__traceback__, 0\n    while t: n, t = n + 1, t.tb_next\n    print(n)",
	"a logger's caller":          "import logging\nlogging.basicConfig(format='%(funcName)s %(lineno)d %(filename)s %(message)s')\nlogging.error('x')",
	"a warning two levels up":    "import warnings\nwarnings.warn('w', stacklevel=2)",
	"form feed in the source":    "x = 1\n\f\ndef f():\n    1/0\nf()",
	"U+2028 in the source":       "s = 'a\u2028b\x1cc\u0085d'\nprint(ascii(s))\n1/0",
	"line ends of DOS":           "x = 1\r\nprint('''a\r\nb''')\r\n1/0",
	"line ends of old Macs":      "x = 1\rprint(x)\r1/0",
	"a huge exit status":         "import sys\nsys.exit(2**70)",
	"a huge negative status":     "import sys\nsys.exit(-2**70)",
	"a negative status":          "import sys\nsys.exit(-1)",
	"a status over a byte":       "import sys\nsys.exit(256 + 7)",
	"a true status":              "import sys\nsys.exit(True)",
	"a status that is a list":    "import sys\nsys.exit([1, 2])",
	"the locale":                 "import locale\nprint(locale.setlocale(locale.LC_ALL, ''), locale.getpreferredencoding())",
	"time zones":                 "import zoneinfo, datetime\nz = zoneinfo.ZoneInfo('Europe/Berlin')\nprint(datetime.datetime(2026, 7, 1, tzinfo=z).utcoffset(), len(zoneinfo.available_timezones()) > 400)",
	"a suggestion":               "number = 1\nprint(nunber)",
	"a suggestion of a name":     "import math\nmath.sqroot(2)",
	"a chain with suggestions":   "number = 1\ntry:\n    nunber\nexcept NameError:\n    import mat\n",
	"an indented message":        "raise ValueError('one\\n  two\\n    three')",
	"a message like a frame":     "raise ValueError('x\\n  File \"y\", line 1\\nKeyError: z')",
	"a nested group":             "def f():\n    raise ExceptionGroup('in', [KeyError('k')])\ntry:\n    f()\nexcept ExceptionGroup as e:\n    raise ExceptionGroup('out', [e, OSError(2, 'no')])",
	"a note":                     "e = ValueError('v')\ne.add_note('a note\\n  of two lines')\nraise e",
	"an exception of its own":    "class Mine(Exception): pass\nraise Mine('m')",
	"an error that cannot print": "class E(Exception):\n    def __str__(self): 1/0\nraise E",
	"recursion":                  "def f(): f()\nf()",
	"a syntax error inside":      "exec('x = = 1')",
	"a bad escape":               "print('\\d')",
	"the order of finalizers":    "class A:\n    def __init__(s, n): s.n = n\n    def __del__(s): print('gone', s.n)\n_a = A('_a'); b = A('b'); __c = A('__c'); d = [A('d1'), A('d2')]",
	"a finalizer of a cycle":     "class A:\n    def __del__(s): print('gone')\na = A(); a.me = a; del a\nprint('end')",
	"atexit after threads":       "import atexit, threading, time\natexit.register(print, 'exit')\nthreading.Thread(target=lambda: (time.sleep(.05), print('thread'))).start()",
	"atexit that fails":          "import atexit\natexit.register(lambda: 1/0)\nprint('x')",
	"stdout that is closed":      "import os\nprint('x')\nos.close(1)",
	"os._exit with a buffer":     "import os\nprint('lost')\nos._exit(3)",
	"fork with a buffer":         "import os\nprint('twice')\nif os.fork() == 0: raise SystemExit\nos.wait()",
	"a pool of threads":          "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(2) as p: print(list(p.map(abs, [-1, -2])))",
	"asyncio":                    "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    print('x')\nasyncio.run(f())\nasyncio.run(f())",
	"context variables":          "import contextvars\nv = contextvars.ContextVar('v', default=1)\nprint(len(contextvars.copy_context()), v.get())",
	"threads and their names":    "import threading\nprint(threading.current_thread().name, threading.main_thread() is threading.current_thread(), threading.active_count())",
	"signals":                    "import signal\nprint([s for s in signal.valid_signals() if signal.getsignal(s) not in (signal.SIG_DFL, signal.SIG_IGN, signal.default_int_handler) and s != signal.SIGURG])",
	"what main is":               "import __main__, sys\nprint(__main__.__loader__, __main__.__spec__, __main__.__doc__, __main__.__package__, sys.modules['__main__'] is __main__, vars(__main__) is globals(), dir())",
	"hooks":                      "import sys, threading\nprint(sys.excepthook is sys.__excepthook__, sys.displayhook is sys.__displayhook__, sys.unraisablehook is sys.__unraisablehook__, sys.gettrace(), sys.getprofile())",
	"random, seeded":             "import random\nrandom.seed(5)\nprint(random.random(), random.sample(range(100), 5))",
	"floats and integers":        "import sys\nprint(1e22, 0.1 + 0.2, 10**30, sys.float_info.dig, sys.get_int_max_str_digits())",
	"text with surrogates":       "import sys\nsys.stdout.buffer.write(b'\\xff\\n')\nprint('\\udcff')",
	"no stdout any more":         "import sys\ndel sys.stdout",
	"stdout is None":             "import sys\nprint('x')\nsys.stdout = None",
	"builtins are gone":          "import builtins, sys\nfor n in ('isinstance', 'print', 'list', 'getattr', 'type', 'len', 'BaseException'):\n    delattr(builtins, n)\nsys.exit(3)",
	"os is gone":                 "import os, sys\nfor n in list(vars(os)):\n    if n != '__name__': delattr(os, n)\nsys.exit(4)",
	"deep parentheses":           "eval('(' * 300 + ')' * 300)",
	"memory error":               "raise MemoryError",
	"no memory for it":           "x = [0] * (1 << 50)",
	"stdin":                      "import sys\nprint(repr(sys.stdin.read()), sys.stdin.isatty())",
	"doctest of itself":          "def f():\n    '''\n    >>> f()\n    1\n    '''\n    return 1\nimport doctest\nprint(doctest.testmod())",
	"unraisable":                 "class A:\n    def __del__(s): 1/0\nA()\nprint('x')",
}

// A program behaves the same in a restored sandbox, in a booted one, and as
// `python3 -c` on the host, in all that its caller can see: output, exit status and
// exception.
func TestWarmColdAndPlainBehaveTheSame(t *testing.T) {
	d := startDaemon(t, "--pool=bare=1,sympy=2")
	all := maps.Clone(corpus)
	maps.Copy(all, oddities)
	for name, code := range all {
		t.Run(name, func(t *testing.T) {
			cold := call(t, d, api.Request{Code: code, Cold: true})
			warm := call(t, d, api.Request{Code: code, Image: "sympy"})
			if cold.Warm || !warm.Warm {
				t.Fatalf("cold call warm=%v, warm call warm=%v", cold.Warm, warm.Warm)
			}
			if diff := cmp.Diff(what(cold), what(warm), withoutAddresses); diff != "" {
				t.Errorf("cold and warm differ (-cold +warm):\n%s", diff)
			}
			if text := warm.Stderr.Text() + cold.Stderr.Text() + warm.Stdout.Text(); strings.Contains(text, "<worker>") {
				t.Errorf("the worker shows:\n%s", text)
			}
			if differsByDesign[name] {
				return
			}
			got, want := what(warm), plainly(t, code)
			want.Exception = got.Exception // read off stderr, which is compared
			got.Stderr, want.Stderr = withoutSource(got.Stderr), withoutSource(want.Stderr)
			if diff := cmp.Diff(want, got, withoutAddresses); diff != "" {
				t.Errorf("plain and warm differ (-plain +warm):\n%s", diff)
			}
		})
	}
}

// differsByDesign are programs that see what a sandbox is for, or that tracebacks
// and inspect know the program's source, which `python3 -c` does not keep.
var differsByDesign = map[string]bool{
	"source of itself":  true,
	"limits":            true,
	"doctest of itself": true,
	"pdb":               true,
	// Here the interpreter is not taken apart before the last finalizer.
	"a finaliser that imports": true,
}

// plainly runs a program by `python3 -c` on the host, in the environment that
// sandboxes have.
func plainly(t *testing.T, code string) seen {
	t.Helper()
	cmd := exec.Command("/usr/bin/python3", "-c", code)
	cmd.Env, cmd.Dir = bundle.Environment(), t.TempDir()
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run()
	s := seen{Outcome: api.OK, ExitCode: cmd.ProcessState.ExitCode()}
	kept := func(b *strings.Builder) string {
		text := b.String()
		return strings.ToValidUTF8(text[max(0, len(text)-64<<10):], "\uFFFD")
	}
	s.Stdout, s.Stderr = kept(&stdout), kept(&stderr)
	if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signaled() {
		s.ExitCode, s.Outcome = 128+int(ws.Signal()), api.Killed
		if ws.Signal() == syscall.SIGSEGV { // a fault is an error
			s.Outcome = api.Error
		}
		return s
	}
	if s.ExitCode != 0 {
		s.Outcome = api.Error
	}
	return s
}

var (
	addresses = regexp.MustCompile(`0x[0-9a-f]{8,}`)
	warning   = regexp.MustCompile(`^<string>:\d+: \w+: `)
)

// withoutAddresses compares text but for the addresses of objects.
var withoutAddresses = cmp.Transformer("addresses", func(s seen) [5]string {
	hide := func(text string) string { return addresses.ReplaceAllString(text, "0x…") }
	return [5]string{string(s.Outcome), strconv.Itoa(s.ExitCode), s.Exception, hide(s.Stdout), hide(s.Stderr)}
})

// withoutSource leaves out the lines of source that follow a place in the program
// in a traceback or a warning.
func withoutSource(stderr string) string {
	var kept []string
	frame := -1 // the column of the frame that the last lines belong to; -1 is none
	for line := range strings.SplitSeq(stderr, "\n") {
		column := strings.Index(line, `File "<string>", line `)
		switch {
		case column >= 0 && strings.Contains(line, ", in "):
			frame = column
		case frame >= 0 && len(line) > frame+2 && strings.Trim(line[:frame+2], " |") == "":
			continue
		case warning.MatchString(line):
			frame = 0
		default:
			frame = -1
		}
		kept = append(kept, line)
	}
	return strings.Join(kept, "\n")
}

// A traceback shows the program's own lines.
func TestTracebackShowsTheProgram(t *testing.T) {
	d := startDaemon(t)
	r := call(t, d, api.Request{Code: "def f(x):\n    return 1 / x\n\nf(0)"})
	want := "Traceback (most recent call last):\n" +
		"  File \"<string>\", line 4, in <module>\n    f(0)\n" +
		"  File \"<string>\", line 2, in f\n    return 1 / x\n           ~~^~~\n" +
		"ZeroDivisionError: division by zero\n"
	if got := r.Stderr.Text(); got != want {
		t.Errorf("stderr is\n%s\nwant\n%s", got, want)
	}
}

// Two clones of one checkpoint never draw the same numbers, unless the program
// seeds its generator.
func TestClonesDrawDifferentNumbers(t *testing.T) {
	d := startDaemon(t, "--pool=bare=0,sympy=2")
	const draw = `
import mpmath, multiprocessing, os, random, secrets, ssl, tempfile, uuid
import numpy as np, sympy
from sympy.core.random import rng
for x in (random.random(), np.random.rand(), np.random.default_rng().random(), rng.random(), secrets.token_hex(8),
          os.urandom(8).hex(), uuid.uuid4(), uuid.uuid1(), tempfile.mktemp(), random.SystemRandom().random(),
          random.Random().random(), np.random.RandomState().rand(), np.random.Generator(np.random.PCG64()).random(),
          np.random.permutation(10**6)[0], mpmath.rand(), sympy.randprime(10**9, 10**12), sympy.randMatrix(1, 1, 0, 10**9)[0],
          ssl.RAND_bytes(8).hex(), multiprocessing.current_process().authkey.hex()):
    print(x)
`
	first := strings.Fields(call(t, d, api.Request{Code: draw}).Stdout.Text())
	second := strings.Fields(call(t, d, api.Request{Code: draw}).Stdout.Text())
	if len(first) != 19 || len(second) != 19 {
		t.Fatalf("drew %d and %d values, want 19 each", len(first), len(second))
	}
	for i := range first {
		if first[i] == second[i] {
			t.Errorf("both sandboxes drew %s as value %d", first[i], i)
		}
	}
	const seeded = "import random, numpy as np\nrandom.seed(1); np.random.seed(1)\nprint(random.random(), np.random.rand(), np.random.default_rng(1).random())"
	a := call(t, d, api.Request{Code: seeded}).Stdout.Text()
	b := call(t, d, api.Request{Code: seeded, Cold: true}).Stdout.Text()
	if a != b || a == "" {
		t.Errorf("seeded programs drew %q and %q, want the same", a, b)
	}
}

// The clock of a restored sandbox is the host's, not the checkpoint's.
func TestClockAfterRestore(t *testing.T) {
	d := startDaemon(t)
	before := time.Now().Unix()
	r := call(t, d, api.Request{Code: "import time; print(int(time.time()))"})
	var got int64
	for _, c := range strings.TrimSpace(r.Stdout.Text()) {
		got = got*10 + int64(c-'0')
	}
	if after := time.Now().Unix(); got < before-1 || got > after+1 {
		t.Errorf("the sandbox's clock says %d, the host's %d to %d", got, before, after)
	}
}

// Measurements belong to the program: waiting and starting stand apart.
func TestMeasurements(t *testing.T) {
	d := startDaemon(t)
	r := call(t, d, api.Request{Code: "import time\nx = bytearray(200 << 20)\nt = time.process_time()\nwhile time.process_time() - t < 0.2: pass"})
	if r.Outcome != api.OK {
		t.Fatalf("outcome %s: %s", r.Outcome, r.Stderr.Text())
	}
	if r.CPUMS < 150 || r.WallMS < 150 {
		t.Errorf("cpu %.0f ms, wall %.0f ms; the program burnt at least 200 ms of CPU", r.CPUMS, r.WallMS)
	}
	if r.PeakMemory < 200<<20 || r.PeakMemory > 512<<20 {
		t.Errorf("peak memory %d, the program held 200 MiB under a limit of 512 MiB", r.PeakMemory)
	}
	if r.SandboxID == "" || r.Image != "bare" || r.Protections.Isolation != "gvisor" {
		t.Errorf("incomplete result: %+v", r)
	}
}
