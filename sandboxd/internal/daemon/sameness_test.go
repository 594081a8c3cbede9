package daemon

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-rl/sluice/sandboxd/api"
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

// A program behaves the same in a booted and in a restored sandbox.
func TestWarmAndColdBehaveTheSame(t *testing.T) {
	d := startDaemon(t, "--pool=bare=1,sympy=1")
	programs := map[string]string{
		"name, argv and file":    "import sys\nprint(__name__, sys.argv, sys.orig_argv, '__file__' in globals(), sys.path[0] == '', sorted(globals()))",
		"a traceback":            "def f(x):\n    return 1 / x\n\nf(0)",
		"a chained traceback":    "try:\n    {}['a']\nexcept KeyError as e:\n    raise ValueError('b') from e",
		"an exception group":     "raise ExceptionGroup('g', [ValueError(1), TypeError(2)])",
		"a traceback in numpy":   "import numpy as np\nnp.linalg.inv(np.zeros((2, 2)))",
		"a traceback in sympy":   "import sympy\nsympy.sympify('1 +')",
		"a syntax error":         "x = (1,\ny = 2",
		"an indentation error":   "if True:\nprint(1)",
		"a warning":              "import warnings\nwarnings.warn('w')",
		"exit status":            "raise SystemExit(3)",
		"exit without status":    "exit()",
		"exit text":              "import sys\nsys.exit('bye')",
		"keyboard interrupt":     "raise KeyboardInterrupt",
		"atexit":                 "import atexit\natexit.register(print, 'last')\nprint('first')",
		"finalizers":             "class A:\n    def __del__(self): print('gone')\na = A()\nprint('end')",
		"a thread outlives":      "import threading, time\ndef f():\n    time.sleep(0.05)\n    print('thread')\nthreading.Thread(target=f).start()\nprint('main')",
		"an exception in thread": "import threading\nt = threading.Thread(target=lambda: 1/0, name='t')\nt.start(); t.join()\nprint('main')",
		"own excepthook":         "import sys\nsys.excepthook = lambda *a: print('hook', a[0].__name__)\n1/0",
		"imports":                "import sympy\nprint(sympy.__version__)\nprint('numpy' in globals())",
		"pickle of own class":    "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))).__module__)",
		"source of itself":       "import inspect\ndef f(): return 1\nprint(inspect.getsource(f))",
		"future annotations":     "from __future__ import annotations\ndef f(x: nowhere): pass\nprint(f.__annotations__)",
		"sets of text":           "print({'a', 'b', 'c', 'd'}, hash('x'))",
		"own module in cwd":      "open('m.py', 'w').write('x = 1')\nimport m\nprint(m.x)",
		"unprintable":            "print('\\ud800')",
		"dataclass":              "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\nprint(P(1))",
		"process":                "import multiprocessing as mp\ndef f(x): return x * x\nif __name__ == '__main__':\n    with mp.get_context('fork').Pool(2) as p: print(p.map(f, [1, 2, 3]))",
		"limits":                 "import resource\nprint([resource.getrlimit(getattr(resource, r)) for r in ('RLIMIT_NPROC', 'RLIMIT_NOFILE', 'RLIMIT_CORE')])",
		"numbers":                "import sys, locale\nprint(sys.getrecursionlimit(), sys.stdout.encoding, sys.stdout.errors, sys.flags, locale.getlocale())",
	}
	for name, code := range programs {
		t.Run(name, func(t *testing.T) {
			cold := call(t, d, api.Request{Code: code, Cold: true})
			warm := call(t, d, api.Request{Code: code, Image: "sympy"})
			if cold.Warm || !warm.Warm {
				t.Fatalf("cold call warm=%v, warm call warm=%v", cold.Warm, warm.Warm)
			}
			if diff := cmp.Diff(what(cold), what(warm)); diff != "" {
				t.Errorf("cold and warm differ (-cold +warm):\n%s", diff)
			}
			for _, r := range []api.Result{cold, warm} {
				if text := r.Stderr.Text(); strings.Contains(text, "in _main") {
					t.Errorf("the worker shows in the traceback:\n%s", text)
				}
			}
		})
	}
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
