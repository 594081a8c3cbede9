package command

import (
	"testing"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/api"
)

func TestControlCharactersAreMadeVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n":     "plain\ttext\n",
		"\x1b[2J\x07\r":     "␛[2J␇␍",
		"del\x7f c1\u009b!": "del\uFFFD c1\uFFFD!",
		"é€😀":               "é€😀",
	} {
		if got := visible(in); got != want {
			t.Errorf("%q shows as %q, want %q", in, got, want)
		}
	}
}

func TestExitCodes(t *testing.T) {
	for _, tt := range []struct {
		r    api.Result
		want int
	}{
		{api.Result{Outcome: api.OK}, 0},
		{api.Result{Outcome: api.Error, ExitCode: 3}, 3},
		{api.Result{Outcome: api.Killed, ExitCode: 137}, 137},
		{api.Result{Outcome: api.Timeout, ExitCode: -1}, 124},
		{api.Result{Outcome: api.OutOfMemory, ExitCode: -1}, 137},
		{api.Result{Outcome: api.OutputLimit, ExitCode: -1}, 137},
		{api.Result{Outcome: api.InfraError, ExitCode: -1}, 125},
	} {
		if got := exitFor(tt.r); got != tt.want {
			t.Errorf("%s: exit code %d, want %d", tt.r.Outcome, got, tt.want)
		}
	}
}

func TestSeconds(t *testing.T) {
	for text, want := range map[string]time.Duration{"3": 3 * time.Second, "0.5": 500 * time.Millisecond, "1m30s": 90 * time.Second} {
		var s secondsValue
		if err := s.Set(text); err != nil || time.Duration(s) != want {
			t.Errorf("%q is %s (%v), want %s", text, time.Duration(s), err, want)
		}
	}
	for _, text := range []string{"", "-1", "0", "soon"} {
		var s secondsValue
		if err := s.Set(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}
