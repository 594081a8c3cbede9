package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/api"
	"github.com/sluice-rl/sluice/sandboxd/client"
	"github.com/sluice-rl/sluice/sandboxd/internal/host/state"
)

// The tests of this file need no gVisor: they run plain processes, since what
// they look at is the daemon's outside.

// served is a daemon that listens.
type served struct {
	cfg    *Config
	client *client.Client
	signal context.CancelFunc // the first signal
	again  context.CancelFunc // the second
	ended  chan error
}

func serveProcesses(t *testing.T, args ...string) *served {
	t.Helper()
	_, err := os.Stat("/usr/bin/python3")
	need(t, "/usr/bin/python3", err)
	dir, err := os.MkdirTemp("", "sbd") // short: a socket's path has 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	cfg := testConfig(t, append([]string{"--isolation=process", "--i-understand-this-is-not-a-sandbox", "--state-dir=" + dir, "--max-wait=10s"}, args...)...)
	graceful, signal := context.WithCancel(t.Context())
	hard, again := context.WithCancel(context.Background())
	s := &served{cfg: cfg, signal: signal, again: again, ended: make(chan error, 1)}
	go func() { s.ended <- run(graceful, hard, cfg, testLog(t), func() {}) }()
	t.Cleanup(func() { signal(); again(); <-s.ended })
	if s.client, err = client.New(client.Config{Address: cfg.Socket}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.client.Close)
	s.until(t, "ready", func() bool { return s.client.Ready(t.Context()) == nil })
	return s
}

// until polls for a condition; only its truth is asserted, never its time.
func (s *served) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		select {
		case err := <-s.ended:
			s.ended <- err
			t.Fatalf("daemon ended while waiting until %s: %v", what, err)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("not %s within a minute", what)
		}
	}
}

func (s *served) health(t *testing.T) api.Health {
	t.Helper()
	h, err := s.client.Health(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

const sleeper = "import time; time.sleep(120)"

func TestRunThroughTheSocket(t *testing.T) {
	s := serveProcesses(t)
	r, err := s.client.Run(t.Context(), client.Request{Code: "import os\nos.write(1, b'\\xffa')\n1/0"})
	if err != nil {
		t.Fatal(err)
	}
	if r.Outcome != api.Error || r.Exception != "ZeroDivisionError" || string(r.Stdout.Kept) != "\xffa" {
		t.Errorf("got %+v", r)
	}
	if r.Protections.Isolation != "none" || len(r.Protections.Missing) == 0 {
		t.Errorf("a plain process must say that it protects nothing: %+v", r.Protections)
	}
	if h := s.health(t); h.Status != "degraded" {
		t.Errorf("health is %q, want degraded", h.Status)
	}
}

func TestBadRequestsAreRefusedWithAReason(t *testing.T) {
	s := serveProcesses(t, "--max-code=1KiB")
	for _, tt := range []struct {
		name string
		req  client.Request
		want string
	}{
		{"too long", client.Request{Code: strings.Repeat("#", 1025)}, "1025 bytes, the limit is 1024"},
		{"negative timeout", client.Request{TimeoutMS: -1}, "timeout_ms is -1"},
		{"timeout too long", client.Request{TimeoutMS: 1 << 40}, "raise --max-timeout"},
		{"unknown image", client.Request{Image: "perl"}, `image "perl" is unknown`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := s.client.Run(t.Context(), tt.req)
			var bad *client.RequestError
			if !errors.As(err, &bad) || !strings.Contains(bad.Message, tt.want) {
				t.Errorf("got %v, want a RequestError with %q", err, tt.want)
			}
		})
	}
	for name, body := range map[string]string{"no JSON": "{", "unknown field": `{"codee":"1"}`, "wrong type": `{"code":1}`, "two requests": `{"code":"1"}{"code":"2"}`, "too large": `{"code":"` + strings.Repeat("a", 1<<20) + `"}`} {
		t.Run(name, func(t *testing.T) {
			resp := s.raw(t, body)
			defer resp.Body.Close()
			var f api.Failure
			if err := json.NewDecoder(resp.Body).Decode(&f); err != nil || resp.StatusCode != http.StatusBadRequest || f.Code != api.CodeBadRequest {
				t.Errorf("got %s %+v %v", resp.Status, f, err)
			}
		})
	}
}

// raw posts a body as curl would.
func (s *served) raw(t *testing.T, body string) *http.Response {
	t.Helper()
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", s.cfg.Socket)
	}}}
	resp, err := c.Post("http://sandboxd/v1/run", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func TestAClientThatGoesAwayEndsItsCall(t *testing.T) {
	s := serveProcesses(t)
	ctx, leave := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := s.client.Run(ctx, client.Request{Code: sleeper, TimeoutMS: 300_000})
		done <- err
	}()
	s.until(t, "running", func() bool { return s.health(t).Running == 1 })
	leave()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the caller's own reason", err)
	}
	s.until(t, "idle again", func() bool { return s.health(t).Running == 0 })
	s.until(t, "rid of the process", func() bool {
		entries, _ := os.ReadDir(filepath.Join(s.cfg.StateDir, "run"))
		return len(entries) == 0
	})
}

func TestReservation(t *testing.T) {
	s := serveProcesses(t, "--slots=2", "--reservable=1")
	r, err := s.client.Reserve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		got, err := r.Run(t.Context(), client.Request{Code: "print(1)"})
		if err != nil || got.Outcome != api.OK {
			t.Fatalf("got %+v, %v", got, err)
		}
	}
	// A second reservation waits; a single call passes.
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.client.Reserve(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the deadline: the only reservable slot is taken", err)
	}
	if got, err := s.client.Run(t.Context(), client.Request{Code: "print(2)"}); err != nil || got.Outcome != api.OK {
		t.Errorf("a single call beside an idle reservation: %+v, %v", got, err)
	}
	// One that runs nothing gives way to another that waits, and then to a call.
	second, err := s.client.Reserve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	<-r.Lost()
	r.Release()
	r.Release()
	if _, err := r.Run(t.Context(), client.Request{Code: "print(3)"}); !errors.Is(err, client.ErrReservationLost) {
		t.Errorf("got %v, want ErrReservationLost", err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := s.client.Run(t.Context(), client.Request{Code: "import time; time.sleep(1)"})
		done <- err
	}()
	s.until(t, "running", func() bool { return s.health(t).Running == 1 })
	if got, err := s.client.Run(t.Context(), client.Request{Code: "print(4)"}); err != nil || got.Outcome != api.OK {
		t.Errorf("a call while every slot was taken: %+v, %v", got, err)
	}
	<-second.Lost()
	if err := <-done; err != nil {
		t.Error(err)
	}
	s.until(t, "nothing reserved", func() bool { return s.health(t).Reserved == 0 })
}

func TestReleaseEndsTheCallInIt(t *testing.T) {
	s := serveProcesses(t)
	r, err := s.client.Reserve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := r.Run(t.Context(), client.Request{Code: sleeper, TimeoutMS: 300_000})
		done <- err
	}()
	s.until(t, "running", func() bool { return s.health(t).Running == 1 })
	r.Release()
	if err := <-done; err == nil {
		t.Error("the call went on without its reservation")
	}
	s.until(t, "idle", func() bool { h := s.health(t); return h.Running == 0 && h.Reserved == 0 })
}

func TestBusySaysWhenToComeBack(t *testing.T) {
	s := serveProcesses(t, "--slots=1", "--queue=0")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { _, _ = s.client.Run(ctx, client.Request{Code: sleeper}) }()
	s.until(t, "running", func() bool { return s.health(t).Running == 1 })
	_, err := s.client.Run(t.Context(), client.Request{Code: "print(1)"})
	var busy *client.BusyError
	if !errors.As(err, &busy) || busy.Code != api.CodeBusy || busy.RetryAfter <= 0 {
		t.Errorf("got %v, want a BusyError with a time", err)
	}
	resp := s.raw(t, `{"code":""}`)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" {
		t.Errorf("got %s with Retry-After %q", resp.Status, resp.Header.Get("Retry-After"))
	}
}

func TestWaitingIsNotRunning(t *testing.T) {
	s := serveProcesses(t, "--slots=1", "--queue=1")
	go func() {
		_, _ = s.client.Run(t.Context(), client.Request{Code: "import time; time.sleep(4)"})
	}()
	s.until(t, "running", func() bool { return s.health(t).Running == 1 })
	// The time in the queue is more than this call's whole time.
	r, err := s.client.Run(t.Context(), client.Request{Code: "print(1)", TimeoutMS: 3000})
	if err != nil || r.Outcome != api.OK {
		t.Fatalf("got %+v, %v", r, err)
	}
	if r.QueueWaitMS <= 0 {
		t.Errorf("queue wait is %f ms, it waited", r.QueueWaitMS)
	}
}

func TestFirstSignalLetsCallsFinish(t *testing.T) {
	s := serveProcesses(t)
	results := make(chan api.Result, 1)
	go func() {
		r, err := s.client.Run(t.Context(), client.Request{Code: "import time; time.sleep(0.5); print('done')"})
		if err != nil {
			t.Error(err)
		}
		results <- r
	}()
	idle, err := s.client.Reserve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.until(t, "running", func() bool { return s.health(t).Running == 1 })
	s.signal()
	if r := <-results; r.Outcome != api.OK || r.Stdout.Text() != "done\n" {
		t.Errorf("the running call got %+v", r)
	}
	err = <-s.ended
	s.ended <- err
	if err != nil {
		t.Errorf("it ended with %v, want a clean stop", err)
	}
	<-idle.Lost() // an idle reservation ends with the daemon
	if _, err := os.Stat(s.cfg.Socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}

func TestSecondSignalEndsCalls(t *testing.T) {
	s := serveProcesses(t)
	done := make(chan error, 1)
	go func() {
		_, err := s.client.Run(t.Context(), client.Request{Code: sleeper, TimeoutMS: 300_000})
		done <- err
	}()
	s.until(t, "running", func() bool { return s.health(t).Running == 1 })
	s.signal()
	s.until(t, "stopping", func() bool { return s.health(t).Status == "stopping" })
	_, err := s.client.Run(t.Context(), client.Request{Code: "print(1)"})
	var busy *client.BusyError
	if !errors.As(err, &busy) || busy.Code != api.CodeStopping {
		t.Errorf("a new call got %v, want stopping", err)
	}
	s.again()
	err = <-s.ended
	s.ended <- err
	if !errors.Is(err, ErrCutShort) {
		t.Errorf("it ended with %v, want ErrCutShort", err)
	}
	if err := <-done; err == nil {
		t.Error("the call that was cut short must fail")
	}
}

func TestMetricsAndToken(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := probe.Addr().String()
	probe.Close()
	serveProcesses(t, "--listen="+address, "--token-file="+token)
	with, err := client.New(client.Config{Address: "http://" + address, TokenFile: token})
	if err != nil {
		t.Fatal(err)
	}
	defer with.Close()
	if r, err := with.Run(t.Context(), client.Request{Code: "print(1)"}); err != nil || r.Outcome != api.OK {
		t.Errorf("with the token: %+v, %v", r, err)
	}
	without, err := client.New(client.Config{Address: "http://" + address})
	if err != nil {
		t.Fatal(err)
	}
	defer without.Close()
	var refused *client.RequestError
	if _, err := without.Run(t.Context(), client.Request{Code: "print(1)"}); !errors.As(err, &refused) || refused.Code != api.CodeUnauthorized {
		t.Errorf("without the token: %v", err)
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
	req.Header.Set("Authorization", "Bearer 0123456789abcdef")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	for _, want := range []string{`sandboxd_calls_total{image="process",outcome="ok",start="cold"}`, "sandboxd_queue_wait_seconds_count", "sandboxd_swept_total"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("metrics lack %s", want)
		}
	}
}

func TestOneDaemonPerStateDirectory(t *testing.T) {
	s := serveProcesses(t)
	_, err := New(t.Context(), s.cfg, testLog(t))
	if !errors.Is(err, state.ErrInUse) {
		t.Errorf("a second daemon got %v, want ErrInUse", err)
	}
}

// A call that the daemon cuts short is told so: the client must not take it for one
// that printed nothing.
func TestForcedStopIsSaid(t *testing.T) {
	for name, stop := range map[string]func(s *served){
		"by a second signal":      func(s *served) { s.signal(); s.again() },
		"after the time to drain": func(s *served) { s.signal() },
	} {
		t.Run(name, func(t *testing.T) {
			s := serveProcesses(t, "--drain-timeout=300ms")
			type answer struct {
				status string
				f      api.Failure
			}
			answers := make(chan answer, 2)
			for range 2 {
				go func() {
					resp := s.raw(t, `{"code":"import time; time.sleep(120)","timeout_ms":300000}`)
					defer resp.Body.Close()
					var f api.Failure
					_ = json.NewDecoder(resp.Body).Decode(&f)
					answers <- answer{resp.Status, f}
				}()
			}
			s.until(t, "running", func() bool { return s.health(t).Running == 2 })
			stop(s)
			for range 2 {
				if a := <-answers; !strings.HasPrefix(a.status, "503") || a.f.Code != api.CodeStopping || a.f.RetryAfterMS == 0 {
					t.Errorf("got %s %+v, want 503 %s", a.status, a.f, api.CodeStopping)
				}
			}
			err := <-s.ended
			s.ended <- err
			if !errors.Is(err, ErrCutShort) {
				t.Errorf("the daemon ended with %v, want ErrCutShort", err)
			}
		})
	}
}

// A client that stops in the middle of its request does not keep a connection.
func TestSlowRequestIsCutShort(t *testing.T) {
	s := serveProcesses(t, "--body-timeout=200ms")
	for _, path := range []string{"/v1/run", "/v1/reserve"} {
		conn, err := net.Dial("unix", s.cfg.Socket)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "POST "+path+" HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{\"code\":"); err != nil {
			t.Fatal(err)
		}
		said, err := io.ReadAll(conn) // until the daemon closes it
		if err != nil || !strings.HasPrefix(string(said), "HTTP/1.1 408 ") {
			t.Errorf("%s: got %q, %v; want 408 and the end of the connection", path, said, err)
		}
	}
}

// A body that is slow but arrives in time is no reason to end a long call.
func TestBodyTimeDoesNotBoundTheCall(t *testing.T) {
	s := serveProcesses(t, "--body-timeout=200ms")
	r, err := s.client.Run(t.Context(), client.Request{Code: "import time; time.sleep(0.5); print('done')"})
	if err != nil || r.Stdout.Text() != "done\n" {
		t.Errorf("got %+v, %v", r, err)
	}
}

// The client runs nothing else than what it was given.
func TestClientRefusesWhatJSONWouldChange(t *testing.T) {
	s := serveProcesses(t)
	var refused *client.RequestError
	if _, err := s.client.Run(t.Context(), client.Request{Code: "print('\xff')"}); !errors.As(err, &refused) {
		t.Errorf("got %v, want a RequestError", err)
	}
}

// Who reserves twice with one key holds one slot, whether the first still waits or
// is held.
func TestReservationsWithOneKeyAreOne(t *testing.T) {
	s := serveProcesses(t, "--slots=2", "--reservable=2")
	first, err := s.client.ReserveAs(t.Context(), "slot-1")
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.client.ReserveAs(t.Context(), "slot-1")
	if err != nil {
		t.Fatal(err)
	}
	<-first.Lost() // it was taken over
	if again.ID() != first.ID() || s.health(t).Reserved != 1 {
		t.Errorf("reservations %s and %s, %d slots reserved; want one", first.ID(), again.ID(), s.health(t).Reserved)
	}
	if r, err := again.Run(t.Context(), client.Request{Code: "print(1)"}); err != nil || r.Outcome != api.OK {
		t.Errorf("the slot that was taken over: %+v, %v", r, err)
	}
	first.Release() // what he no longer holds
	other, err := s.client.ReserveAs(t.Context(), "slot-2")
	if err != nil {
		t.Fatal(err)
	}
	if h := s.health(t); h.Reserved != 2 || other.ID() == again.ID() {
		t.Errorf("%d slots reserved, want 2: another key is another slot", h.Reserved)
	}
	again.Release()
	other.Release()
	s.until(t, "free again", func() bool { return s.health(t).Reserved == 0 })
	back, err := s.client.ReserveAs(t.Context(), "slot-1")
	if err != nil {
		t.Fatal(err)
	}
	if back.ID() == first.ID() {
		t.Error("a slot that was given back is still held")
	}
	back.Release()
}

func TestAWaitIsTakenOverToo(t *testing.T) {
	s := serveProcesses(t, "--slots=1", "--reservable=1", "--max-wait=1m")
	busy := make(chan error, 1)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	go func() {
		_, err := s.client.Run(ctx, client.Request{Code: sleeper, TimeoutMS: 300_000})
		busy <- err
	}()
	s.until(t, "running", func() bool { return s.health(t).Running == 1 })
	type got struct {
		r   *client.Reservation
		err error
	}
	wait := func() chan got {
		c := make(chan got, 1)
		go func() { r, err := s.client.ReserveAs(t.Context(), "slot"); c <- got{r, err} }()
		return c
	}
	first := wait()
	s.until(t, "waiting", func() bool { return s.health(t).Waiting == 1 })
	second := wait()
	var refused *client.RequestError
	if g := <-first; !errors.As(g.err, &refused) {
		t.Errorf("the first wait ended with %v, want to hear that it was taken over", g.err)
	}
	s.until(t, "waiting alone", func() bool { return s.health(t).Waiting == 1 })
	end()
	<-busy
	g := <-second
	if g.err != nil {
		t.Fatal(g.err)
	}
	g.r.Release()
}
