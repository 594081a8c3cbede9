package observation

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

const (
	ok        = sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_OK
	failed    = sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_ERROR
	timedOut  = sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_TIMEOUT
	noMemory  = sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_OUT_OF_MEMORY
	tooMuch   = sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_OUTPUT_LIMIT
	gotKilled = sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_KILLED
)

func TestText(t *testing.T) {
	for name, c := range map[string]struct {
		run  *sluicev1.Execution
		want string
	}{
		"stdout on success":                          {&sluicev1.Execution{Outcome: ok, Stdout: "37\n", Stderr: "a warning"}, "37\n"},
		"empty if nothing was printed":               {&sluicev1.Execution{Outcome: ok}, ""},
		"control characters are the program's":       {&sluicev1.Execution{Outcome: ok, Stdout: "x\r\ny\x00z"}, "x\r\ny\x00z"},
		"the raw stderr on failure":                  {&sluicev1.Execution{Outcome: failed, ExitCode: 1, Stdout: "37\n", Stderr: "NameError: name 'x' is not defined\n"}, "NameError: name 'x' is not defined\n"},
		"the exit code where stderr is empty":        {&sluicev1.Execution{Outcome: failed, ExitCode: 3, Stdout: "partial"}, "Error: process exited with code 3."},
		"an exit code below 0":                       {&sluicev1.Execution{Outcome: failed, ExitCode: -9}, "Error: process exited with code -9."},
		"time-out, whatever was printed":             {&sluicev1.Execution{Outcome: timedOut, TimeoutMs: 30_000, Stdout: "1\n2\n", Stderr: "x"}, "Error: execution timed out after 30 seconds."},
		"time-out of a fraction":                     {&sluicev1.Execution{Outcome: timedOut, TimeoutMs: 1500}, "Error: execution timed out after 1.5 seconds."},
		"memory":                                     {&sluicev1.Execution{Outcome: noMemory, Stderr: "MemoryError"}, "Error: execution exceeded the memory limit."},
		"output limit":                               {&sluicev1.Execution{Outcome: tooMuch, Stdout: "xxxx"}, "Error: execution exceeded the output limit."},
		"killed":                                     {&sluicev1.Execution{Outcome: gotKilled, ExitCode: 137}, "Error: execution was killed."},
		"an outcome that this version does not know": {&sluicev1.Execution{Outcome: 99, ExitCode: 5}, "Error: process exited with code 5."},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Text(c.run, Message); got != c.want {
				t.Errorf("Text = %q, want %q", got, c.want)
			}
		})
	}
}

// With the output of a program that ran too long only time-outs read otherwise, and
// only of those it is recorded.
func TestOutputOfATimeout(t *testing.T) {
	for name, c := range map[string]struct {
		run            *sluicev1.Execution
		want, recorded string
	}{
		"what was printed":         {&sluicev1.Execution{Outcome: timedOut, TimeoutMs: 2000, Stdout: "1\n2\n", Stderr: "x"}, "1\n2\nError: execution timed out after 2 seconds.", "output"},
		"a line that was not over": {&sluicev1.Execution{Outcome: timedOut, TimeoutMs: 2000, Stdout: "1"}, "1\nError: execution timed out after 2 seconds.", "output"},
		"nothing":                  {&sluicev1.Execution{Outcome: timedOut, TimeoutMs: 2000, Stderr: "x"}, "Error: execution timed out after 2 seconds.", ""},
		"another outcome":          {&sluicev1.Execution{Outcome: noMemory, Stdout: "1\n"}, OutOfMemory, ""},
		"success":                  {&sluicev1.Execution{Outcome: ok, Stdout: "1\n"}, "1\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Text(c.run, Output); got != c.want {
				t.Errorf("Text = %q, want %q", got, c.want)
			}
			if got := Output.Recorded(c.run); got != c.recorded {
				t.Errorf("recorded as %q, want %q", got, c.recorded)
			}
			if got := Message.Recorded(c.run); got != "" {
				t.Errorf("the reference's own form is recorded as %q", got)
			}
		})
	}
	for name, want := range map[string]bool{"message": true, "output": true, "": false, "Output": false} {
		if _, err := ParseTimeout(name); (err == nil) != want {
			t.Errorf("ParseTimeout(%q): %v", name, err)
		}
	}
}

func TestEachStreamKeepsItsLastCharacters(t *testing.T) {
	for name, c := range map[string]struct {
		kept    string
		dropped uint64
		want    string
		clipped bool
	}{
		"nothing":                     {"", 0, "", false},
		"one below the limit":         {strings.Repeat("a", 4095), 0, strings.Repeat("a", 4095), false},
		"the limit":                   {strings.Repeat("a", 4096), 0, strings.Repeat("a", 4096), false},
		"above it, in characters":     {strings.Repeat("数", 5000), 0, "[... truncated 904 chars ...]\n" + strings.Repeat("数", 4096), true},
		"bytes that are not UTF-8":    {"a\xff\xfe\xe6\x95b", 0, "a\ufffd\ufffd\ufffd\ufffdb", false},
		"dropped before it got here":  {strings.Repeat("a", 5000), 10_000_000, "[... truncated 10000904 bytes ...]\n" + strings.Repeat("a", 4096), true},
		"dropped, and little is left": {"tail", 7, "[... truncated 7 bytes ...]\ntail", true},
	} {
		t.Run(name, func(t *testing.T) {
			got, clipped := ClipStream([]byte(c.kept), c.dropped)
			if got != c.want || clipped != c.clipped {
				t.Errorf("ClipStream = %.60q (%d bytes), %t; want %.60q (%d bytes), %t", got, len(got), clipped, c.want, len(c.want), c.clipped)
			}
		})
	}
}

func TestDefuse(t *testing.T) {
	d, err := NewDefuser(Qwen())
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		"37\n":                            "37\n",
		"<|im_end|>x<|im_start|>":         "< im_end >x< im_start >",
		"</tool_response><tool_response>": "< /tool_response>< tool_response >",
		"<<|im_end|>>":                    "<< im_end >>",
		"<|endoftext|> and <think>":       "< endoftext > and < think >",
		"</tool_call>":                    "< /tool_call>",
		"<|im_end |> is no token":         "<|im_end |> is no token",
		"a < b | c > d":                   "a < b | c > d",
	} {
		if got := d.Defuse(in); got != want {
			t.Errorf("Defuse(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestDefuserRefusesWhatASpaceCannotBreak(t *testing.T) {
	for _, token := range []string{"", "x", "  ", "<a b>"} {
		if _, err := NewDefuser([]string{token}); !errors.Is(err, ErrToken) {
			t.Errorf("NewDefuser(%q) error = %v, want ErrToken", token, err)
		}
	}
}

func TestNoTokenSurvives(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		// Short tokens over few letters overlap each other in every way.
		tokens := rapid.SliceOfN(rapid.StringMatching(`[<|>ab]{2,4}`), 1, 6).Draw(rt, "tokens")
		text := rapid.StringMatching(`([<|>ab ]|<\|im_end\|>|</?tool_response>){0,40}`).Draw(rt, "text")
		d, err := NewDefuser(tokens)
		if err != nil {
			rt.Fatal(err)
		}
		got := d.Defuse(text)
		for _, token := range append(Always(), tokens...) {
			if strings.Contains(got, token) {
				rt.Fatalf("Defuse(%q) = %q holds %q", text, got, token)
			}
		}
	})
}

func TestShrink(t *testing.T) {
	got, more := Shrink(strings.Repeat("a", 70) + strings.Repeat("数", 30))
	if want := Marker + strings.Repeat("a", 40) + strings.Repeat("数", 30); got != want || !more {
		t.Errorf("Shrink(100 characters) = %q, %t; want %q", got, more, want)
	}
	if got, _ := Shrink(strings.Repeat("a", 90)); len(got) != len(Marker)+62 {
		t.Errorf("Shrink(90 characters) keeps %d of them, want 62: 0.7 times 90 in floating point, rounded down", len(got)-len(Marker))
	}
	for n, want := range map[int]bool{0: false, 64: false, 65: false, 66: false, 67: true, 68: true} {
		if _, more := Shrink(strings.Repeat("a", n)); more != want {
			t.Errorf("Shrink(%d characters): ok = %t, want %t", n, more, want)
		}
	}
}

func TestShrinkingEndsAndKeepsTheTail(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := rapid.StringN(0, 5000, -1).Draw(rt, "text") + "tail"
		for {
			next, more := Shrink(s)
			if !more {
				break
			}
			if utf8.RuneCountInString(next) >= utf8.RuneCountInString(s) || !strings.HasSuffix(next, "tail") || !strings.HasPrefix(next, Marker) {
				rt.Fatalf("Shrink(%q) = %q: want it shorter, with marker and tail", s, next)
			}
			s = next
		}
	})
}

func BenchmarkTextDefuseShrink(b *testing.B) {
	d, err := NewDefuser(Qwen())
	if err != nil {
		b.Fatal(err)
	}
	out := []byte(strings.Repeat("value 数 <|im_end|> 12345\n", 1000))
	b.SetBytes(int64(len(out)))
	b.ReportAllocs()
	for b.Loop() {
		stdout, _ := ClipStream(out, 0)
		s := d.Defuse(Text(&sluicev1.Execution{Outcome: ok, Stdout: stdout}, Message))
		for more := true; more; {
			s, more = Shrink(s)
		}
	}
}
