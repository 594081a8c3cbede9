package client_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sluice-rl/sluice/sandboxd/client"
)

// A caller must know whether a program that it has to repeat may have run already.
func TestACutCallSaysWhetherTheProgramMayHaveRun(t *testing.T) {
	cut := func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		conn.Close()
	}
	for _, c := range []struct {
		name    string
		answer  http.HandlerFunc
		unknown bool
		want    func(error) bool
	}{
		{"cut before an answer", cut, true, nil},
		{"cut in mid-answer", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte(`{"outcome":"o`))
			_ = http.NewResponseController(w).Flush()
			cut(w, r)
		}, true, nil},
		{"ended by the daemon's stop", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"code":"stopping","message":"bye","begun":true}`))
		}, true, func(err error) bool { var busy *client.BusyError; return errors.As(err, &busy) }},
		{"an answer that is not ours", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, true, nil},
		{"busy", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = w.Write([]byte(`{"code":"busy","message":"later"}`))
		}, false, func(err error) bool { var busy *client.BusyError; return errors.As(err, &busy) }},
		{"reservation lost", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusGone)
			_, _ = w.Write([]byte(`{"code":"unknown_reservation","message":"no such reservation"}`))
		}, false, func(err error) bool { return errors.Is(err, client.ErrReservationLost) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			daemon := httptest.NewServer(c.answer)
			defer daemon.Close()
			cl, err := client.New(client.Config{Address: daemon.URL})
			if err != nil {
				t.Fatal(err)
			}
			_, err = cl.Run(t.Context(), client.Request{Code: "print(1)"})
			var unknown *client.EndUnknownError
			if errors.As(err, &unknown) != c.unknown || c.want != nil && !c.want(err) {
				t.Errorf("got %v (%T), end unknown: %v", err, err, !c.unknown)
			}
		})
	}
}

func TestACallThatNeverReachedTheDaemonDidNotBegin(t *testing.T) {
	cl, err := client.New(client.Config{Address: "http://sandboxd.invalid", Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("connection refused")
	}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = cl.Run(t.Context(), client.Request{Code: "print(1)"})
	var unknown *client.EndUnknownError
	if err == nil || errors.As(err, &unknown) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("got %v, want an error that says that nothing has begun", err)
	}
}
