package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/internal/serve"
	"github.com/sluice-rl/sluice/sandboxd/internal/serve/httpapi"
)

// run keeps the daemon until graceful ends, then drains it; hard cuts the
// draining short. ready is called once programs can be run.
func run(graceful, hard context.Context, cfg *Config, log *slog.Logger, ready func()) (err error) {
	d, err := New(graceful, cfg, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()

	calls, endCalls := context.WithCancelCause(context.WithoutCancel(hard))
	stop := func() { endCalls(serve.ErrStopping) }
	defer stop()
	defer context.AfterFunc(hard, stop)()
	servers, failed, err := d.listen(calls)
	if err != nil {
		return err
	}
	defer func() {
		stop()
		for _, s := range servers {
			// Handlers end with their context; waiting for them keeps Close
			// from pulling sandboxes from under them.
			closing, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			_ = s.Shutdown(closing)
			cancel()
			_ = s.Close()
		}
		_ = os.Remove(cfg.Socket)
	}()
	if err := d.Prepare(graceful); err != nil {
		if graceful.Err() != nil {
			return nil
		}
		return err
	}
	ready()
	watching, endWatch := context.WithCancel(graceful)
	watched := make(chan struct{})
	go func() { defer close(watched); d.Watch(watching) }()
	defer func() { endWatch(); <-watched }()

	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-graceful.Done():
	}
	return d.drain(hard)
}

// listen opens the sockets; requests end with ctx.
func (d *Daemon) listen(ctx context.Context) ([]*http.Server, <-chan error, error) {
	if err := os.MkdirAll(filepath.Dir(d.cfg.Socket), 0o700); err != nil {
		return nil, nil, fmt.Errorf("socket: %w", err)
	}
	// The lock on the state directory proves that no other daemon of this
	// folder lives; a socket elsewhere may still be somebody's.
	if conn, err := net.DialTimeout("unix", d.cfg.Socket, time.Second); err == nil {
		conn.Close()
		return nil, nil, fmt.Errorf("socket %s is served by another process: choose another --socket", d.cfg.Socket)
	}
	if err := os.Remove(d.cfg.Socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("remove stale socket: %w", err)
	}
	handler := httpapi.New(httpapi.Config{
		Caller: d.service, Health: d.Health, RetryAfter: d.gate.RetryAfter, Metrics: d.metrics,
		MaxBody:  6*int64(d.cfg.MaxCode) + 64<<10, // JSON may write one byte as six
		BodyTime: d.cfg.BodyTime,
		Log:      d.log,
	})
	unix, err := net.Listen("unix", d.cfg.Socket)
	if err != nil {
		return nil, nil, fmt.Errorf("socket: %w", err)
	}
	if err := os.Chmod(d.cfg.Socket, 0o600); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("socket: %w", err), unix.Close())
	}
	failed := make(chan error, 2)
	servers := []*http.Server{start(ctx, unix, handler, failed)}
	if d.cfg.Listen == "" {
		return servers, failed, nil
	}
	token, err := os.ReadFile(d.cfg.TokenFile)
	if err == nil && len(strings.TrimSpace(string(token))) < 16 {
		err = errors.New("the token must have at least 16 characters")
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%w: --token-file: %w", ErrConfig, err), servers[0].Close())
	}
	tcp, err := net.Listen("tcp", d.cfg.Listen)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%w: --listen: %w", ErrConfig, err), servers[0].Close())
	}
	d.log.Info("listening on TCP", "address", tcp.Addr().String())
	return append(servers, start(ctx, tcp, httpapi.WithToken(handler, strings.TrimSpace(string(token))), failed)), failed, nil
}

// idleTime is how long a connection may stay open without a request. The client of
// this module closes its own after a minute.
const idleTime = 2 * time.Minute

func start(ctx context.Context, l net.Listener, h http.Handler, failed chan<- error) *http.Server {
	s := &http.Server{
		Handler: h, BaseContext: func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: idleTime, MaxHeaderBytes: 16 << 10,
	}
	go func() {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			failed <- err
		}
	}()
	return s
}

// drain lets running calls finish.
func (d *Daemon) drain(hard context.Context) error {
	d.StopIntake()
	d.log.Info("stopping: running calls may finish; signal again to end them", "running", d.service.Running())
	deadline := time.NewTimer(d.cfg.DrainTimeout)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for d.service.Running() > 0 {
		select {
		case <-hard.Done():
			return fmt.Errorf("%w by a second signal: %d", ErrCutShort, d.service.Running())
		case <-deadline.C:
			return fmt.Errorf("%w after --drain-timeout: %d", ErrCutShort, d.service.Running())
		case <-tick.C:
		}
	}
	return nil
}
