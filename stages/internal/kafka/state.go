package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// state is one client's readiness: it can reach the brokers and has what it needs to
// work. Changes are logged once and reported.
type state struct {
	name   string
	report func(name string, err error)
	log    *slog.Logger
	// abandon ends the client's requests under way and lets it make no more.
	abandon context.CancelFunc

	mu      sync.Mutex
	conn    error
	work    error
	last    error
	told    bool
	retired bool
}

var (
	errNotConnected = errors.New("not connected yet")
	errNotBegun     = errors.New("not started yet")
	errLooking      = errors.New("looking for the topics")
	errJoining      = errors.New("joining the group")
	errReading      = errors.New("reading what is there already")
	errStopped      = errors.New("stopped")
)

func newState(name string, report func(string, error), log *slog.Logger) *state {
	s := &state{name: name, report: report, log: log, conn: errNotConnected}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell()
	return s
}

// setWork says whether the client has what it needs: nil, or what it waits for.
func (s *state) setWork(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.work = err
	s.tell()
}

func (s *state) setConn(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if (err == nil) != (s.conn == nil) && !s.retired {
		if err != nil {
			s.log.Warn("brokers cannot be reached: waiting for them", "error", err)
		} else {
			s.log.Info("connected to the brokers")
		}
	} else if err != nil && errors.Is(s.conn, errNotConnected) && !s.retired {
		s.log.Warn("brokers cannot be reached: waiting for them", "error", err)
	}
	s.conn = err
	s.tell()
}

// retire says that the client has been closed; nothing after that counts.
func (s *state) retire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.work = errStopped
	s.tell()
	s.retired = true
}

// tell reports readiness if it changed; mu is held.
func (s *state) tell() {
	if s.retired || s.report == nil {
		return
	}
	err := s.work
	if s.conn != nil {
		err = fmt.Errorf("brokers: %w", s.conn)
	}
	if s.told && (err == nil) == (s.last == nil) && (err == nil || err.Error() == s.last.Error()) {
		return
	}
	s.told, s.last = true, err
	s.report(s.name, err)
}

// watch follows a client's connections. Brokers count as reachable while the last
// attempt to connect to any one of them went well.
type watch struct {
	state *state

	mu    sync.Mutex
	nodes map[int32]error
}

var _ kgo.HookBrokerConnect = (*watch)(nil)

// OnBrokerConnect is called by the client.
func (w *watch) OnBrokerConnect(meta kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.nodes == nil {
		w.nodes = map[int32]error{}
	}
	w.nodes[meta.NodeID] = err
	if meta.NodeID >= 0 && err == nil {
		// Seeds have served: their old success must not hide a later outage.
		for id := range w.nodes {
			if id < 0 {
				delete(w.nodes, id)
			}
		}
	}
	for _, e := range w.nodes {
		if e == nil {
			w.state.setConn(nil)
			return
		}
	}
	w.state.setConn(err)
}

// forget takes the client out of the report: it did its work and is gone.
func (s *state) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn, s.work = nil, nil
	s.tell()
	s.retired = true
}
