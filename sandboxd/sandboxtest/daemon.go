package sandboxtest

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/api"
	"github.com/sluice-rl/sluice/sandboxd/client"
	"github.com/sluice-rl/sluice/sandboxd/internal/serve"
	"github.com/sluice-rl/sluice/sandboxd/internal/serve/admission"
	"github.com/sluice-rl/sluice/sandboxd/internal/serve/breaker"
	"github.com/sluice-rl/sluice/sandboxd/internal/serve/httpapi"
	"github.com/sluice-rl/sluice/sandboxd/internal/serve/metrics"
)

// Program stands for a program's run. It must return when ctx ends.
type Program func(ctx context.Context, code string) api.Result

// Config is what a daemon is like.
type Config struct {
	// Slots is how many calls and reservations there may be; 0 means 4.
	Slots int
	// Reservable is how many of them may be reservations; 0 means all but one, as
	// sandboxd has it.
	Reservable int
	// Queue is how many callers may wait; 0 means 256.
	Queue int
	// Program is run for every call. Nil: it succeeds at once and prints nothing.
	Program Program
	// Log may be nil.
	Log *slog.Logger
}

// Daemon is sandboxd with scripted programs. Make it with New; it starts stopped.
type Daemon struct {
	cfg Config

	mu      sync.Mutex
	life    *life
	accepts *listener
}

// life is the daemon between Start and Kill.
type life struct {
	gate    *admission.Gate
	service *serve.Service
	server  *http.Server
	served  chan struct{}
}

// New makes a daemon that is not running.
func New(cfg Config) *Daemon {
	if cfg.Slots == 0 {
		cfg.Slots = 4
	}
	if cfg.Reservable == 0 {
		cfg.Reservable = max(1, cfg.Slots-1)
	}
	if cfg.Queue == 0 {
		cfg.Queue = 256
	}
	if cfg.Program == nil {
		cfg.Program = func(context.Context, string) api.Result { return api.Result{Outcome: api.OK} }
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Daemon{cfg: cfg}
}

// Start begins to serve; it does nothing if the daemon runs.
func (d *Daemon) Start() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.life != nil {
		return
	}
	gate, m := admission.New(admission.Config{Slots: d.cfg.Slots, Reservable: d.cfg.Reservable, Queue: d.cfg.Queue}), metrics.New()
	service := serve.New(serve.Config{
		DefaultTimeout: 30 * time.Second, MaxTimeout: 5 * time.Minute, MaxCode: 1 << 20, MaxWait: 30 * time.Second,
		Choose: func(string) string { return "test" },
	}, gate, source{d.cfg.Program}, breaker.New(breaker.Config{Window: 20, Threshold: 21}), m, api.Protections{}, d.cfg.Log)
	handler := httpapi.New(httpapi.Config{
		Caller: service, RetryAfter: gate.RetryAfter, Metrics: m, MaxBody: 1 << 20, Log: d.cfg.Log,
		Health: func() (api.Health, bool) { return d.health(gate, service), true },
	})
	l := &life{gate: gate, service: service, server: &http.Server{Handler: handler}, served: make(chan struct{})}
	d.accepts = &listener{conns: make(chan net.Conn), closed: make(chan struct{})}
	d.life = l
	accepts := d.accepts
	go func() {
		defer close(l.served)
		_ = l.server.Serve(accepts)
	}()
}

// Kill ends the daemon as SIGKILL does: connections break, nobody hears a word.
func (d *Daemon) Kill() {
	d.mu.Lock()
	l := d.life
	d.life, d.accepts = nil, nil
	d.mu.Unlock()
	if l == nil {
		return
	}
	_ = l.server.Close()
	<-l.served
}

// Client returns a client of the daemon, in an owner's name. It may be made before Start
// and outlives Kill.
func (d *Daemon) Client(owner string) *client.Client {
	c, err := client.New(client.Config{Address: "http://sandboxd.invalid", Owner: owner, Dial: d.dial})
	if err != nil {
		panic(err) // the address is well-formed
	}
	return c
}

// Health is what the daemon says of itself; zero while it does not run.
func (d *Daemon) Health() api.Health {
	d.mu.Lock()
	l := d.life
	d.mu.Unlock()
	if l == nil {
		return api.Health{}
	}
	return d.health(l.gate, l.service)
}

func (d *Daemon) health(gate *admission.Gate, service *serve.Service) api.Health {
	s := gate.State()
	return api.Health{
		Status: "ok", Slots: s.Slots, Reservable: s.Reservable, Reserved: s.Reserved, Idle: s.Idle, Waiting: s.Waiting, WaitingCalls: s.WaitingCalls,
		Running: service.Running(),
	}
}

func (d *Daemon) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	d.mu.Lock()
	l := d.accepts
	d.mu.Unlock()
	if l == nil {
		return nil, errors.New("dial sandboxd: connection refused")
	}
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, errors.New("dial sandboxd: connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// listener accepts connections in memory.
type listener struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *listener) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }
