package verdict

import (
	"testing"

	"github.com/sluice-rl/sluice/sandboxd/api"
)

func TestDecide(t *testing.T) {
	const traceback = "Traceback (most recent call last):\n  File \"<string>\", line 1, in <module>\n    1/0\n    ~^~\nZeroDivisionError: division by zero\n"
	tests := []struct {
		name string
		in   Evidence
		want Verdict
	}{
		{"status 0 is ok", Evidence{Started: true}, Verdict{Outcome: api.OK}},
		{"an uncaught exception is an error with its class",
			Evidence{Started: true, Status: 1, Stderr: []byte(traceback)},
			Verdict{Outcome: api.Error, ExitCode: 1, Exception: "ZeroDivisionError"}},
		{"sys.exit(3) is an error without class", Evidence{Started: true, Status: 3, Stderr: []byte(traceback)},
			Verdict{Outcome: api.Error, ExitCode: 3}},
		{"sys.exit(128) is the program's own", Evidence{Started: true, Status: 128}, Verdict{Outcome: api.Error, ExitCode: 128}},
		{"a kernel that died is not", Evidence{Started: true, Status: 137, Failure: "boom"},
			Verdict{Outcome: api.InfraError, ExitCode: -1, Cause: api.CauseDied, Message: "boom"}},
		{"a stopped kernel is no time-out of the program's", Evidence{Started: true, Stop: StoppedTime, Status: -1, Failure: "stopped"},
			Verdict{Outcome: api.InfraError, ExitCode: -1, Cause: api.CauseStuck, Message: "stopped"}},
		{"nor is a program that was never taken", Evidence{Stop: StoppedTime, Status: -1},
			Verdict{Outcome: api.InfraError, ExitCode: -1, Cause: api.CauseStuck, Message: "the sandbox did not take the program"}},
		{"a failure before the program was taken", Evidence{Status: 1, Failure: "boom"},
			Verdict{Outcome: api.InfraError, ExitCode: -1, Cause: api.CauseStart, Message: "the sandbox failed before it took the program: boom"}},
		{"a memory kill that took the kernel along is the program's", Evidence{Started: true, Status: 137, Failure: "boom", OOMKills: 1},
			Verdict{Outcome: api.OutOfMemory, ExitCode: -1, Message: "the memory limit was reached"}},
		{"a segfault is the program's error", Evidence{Started: true, Status: 139},
			Verdict{Outcome: api.Error, ExitCode: 139, Message: "SIGSEGV ended the program"}},
		{"SIGKILL not ours is killed", Evidence{Started: true, Status: 137},
			Verdict{Outcome: api.Killed, ExitCode: 137, Message: "signal 9 ended the program"}},
		{"status 255 is no signal", Evidence{Started: true, Status: 255}, Verdict{Outcome: api.Error, ExitCode: 255}},
		{"our kill at the time limit is a timeout, whatever the status",
			Evidence{Started: true, Stop: StoppedTime, Status: 137},
			Verdict{Outcome: api.Timeout, ExitCode: -1, Message: "the time limit was reached"}},
		{"our kill at the output limit", Evidence{Started: true, Stop: StoppedOutput, Status: 137},
			Verdict{Outcome: api.OutputLimit, ExitCode: -1, Message: "the output limit was reached"}},
		{"an OOM kill outranks the time limit it led to", Evidence{Started: true, Stop: StoppedTime, OOMKills: 1},
			Verdict{Outcome: api.OutOfMemory, ExitCode: -1, Message: "the memory limit was reached"}},
		{"an uncaught MemoryError is the program's word, not evidence",
			Evidence{Started: true, Status: 1, Stderr: []byte("Traceback (most recent call last):\n  File \"<string>\", line 1, in <module>\nMemoryError\n")},
			Verdict{Outcome: api.Error, ExitCode: 1, Exception: "MemoryError"}},
		{"no acknowledgement is never the program's fault", Evidence{Status: 1, Stderr: []byte(traceback)},
			Verdict{Outcome: api.InfraError, ExitCode: -1, Cause: api.CauseStart, Message: "the sandbox ended with status 1 before it took the program"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Decide(tt.in); got != tt.want {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
}

func TestExceptionClass(t *testing.T) {
	tests := []struct{ name, stderr, want string }{
		{"none", "", ""},
		{"plain text", "warning: x\n", ""},
		{"syntax error", "  File \"<string>\", line 1\n    def f(:\n          ^\nSyntaxError: invalid syntax\n", "SyntaxError"},
		{"dotted", "Traceback (most recent call last):\n  File \"x\"\nnumpy.linalg.LinAlgError: Singular matrix\n", "numpy.linalg.LinAlgError"},
		{"message of several lines", "Traceback (most recent call last):\n  File \"x\"\nValueError: one\ntwo\nthree\n", "ValueError"},
		{"chained: the last one", "Traceback (most recent call last):\n  File \"x\"\nKeyError: 1\n\nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  File \"y\"\nTypeError: no\n", "TypeError"},
		{"a message whose lines are indented", "Traceback (most recent call last):\n  File \"x\", line 1, in <module>\n    f()\nValueError: one\n  two\n    three\n", "ValueError"},
		{"an empty line in the message", "Traceback (most recent call last):\n  File \"x\", line 1, in <module>\nValueError: \n\n  two\n", "ValueError"},
		{"a group", "  + Exception Group Traceback (most recent call last):\n  |   File \"<string>\", line 1, in <module>\n  | ExceptionGroup: g (2 sub-exceptions)\n  +-+---------------- 1 ----------------\n    | ValueError: 1\n    +---------------- 2 ----------------\n    | Traceback (most recent call last):\n    |   File \"<string>\", line 2, in <module>\n    | TypeError: 2\n    +------------------------------------\n", "ExceptionGroup"},
		{"a group of one's own", "  + Exception Group Traceback (most recent call last):\n  |   File \"<string>\", line 1, in <module>\n  | __main__.Mine: g (1 sub-exception)\n  +-+---------------- 1 ----------------\n    | ValueError: 1\n    +------------------------------------\n", "__main__.Mine"},
		{"repeated frames", "Traceback (most recent call last):\n  File \"<string>\", line 1, in f\n  [Previous line repeated 996 more times]\nRecursionError: maximum recursion depth exceeded\n", "RecursionError"},
		{"a note", "Traceback (most recent call last):\n  File \"x\"\nValueError: v\na note\n", "ValueError"},
		{"output after it", "Traceback (most recent call last):\n  File \"x\"\nKeyError: 1\nException ignored\n", "KeyError"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := ExceptionClass([]byte(tt.stderr)); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func FuzzExceptionClass(f *testing.F) {
	f.Add([]byte("Traceback (most recent call last):\n  File \"x\"\nKeyError: 1\n"))
	f.Add([]byte("  \n\x00:\n"))
	f.Fuzz(func(t *testing.T, stderr []byte) {
		if class := ExceptionClass(stderr); class != "" && !isClass(class) {
			t.Errorf("%q is no class name", class)
		}
	})
}
