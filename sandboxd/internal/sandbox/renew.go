package sandbox

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/internal/sandbox/worker"
)

// ErrNotRenewable occurs when a sandbox cannot run another program: it is not shared,
// or its last program did not end by itself.
var ErrNotRenewable = errors.New("sandbox cannot run another program")

// Renew makes the sandbox of a program that has ended ready for another one. All that
// the first left running is dead by then, and what it wrote after its end is thrown
// away. If it fails the sandbox is to be destroyed.
func (s *Instance) Renew(ctx context.Context) error {
	if !s.renewable || s.hasExited() {
		return ErrNotRenewable
	}
	s.renewable = false
	var b [worker.WordBytes / 2]byte
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	word := hex.EncodeToString(b[:])
	clean := worker.Clean(word)
	s.openStreams([]string{clean, worker.Ready, worker.Run}, clean)
	for i, f := range s.streams {
		_ = f.SetReadDeadline(time.Time{})
		to := []*opening{s.opening, s.errOpening}[i]
		s.read(f, to)
	}
	if _, err := s.stdin.Write([]byte(word)); err != nil {
		return fmt.Errorf("renew sandbox %s: %w", s.cfg.ID, err)
	}
	for _, line := range []<-chan struct{}{s.errOpening.reached(clean), s.opening.reached(worker.Ready)} {
		select {
		case <-line:
		case <-s.exited:
			return fmt.Errorf("renew sandbox %s: it ended with status %d", s.cfg.ID, s.status)
		case <-ctx.Done():
			return fmt.Errorf("renew sandbox %s: %w", s.cfg.ID, context.Cause(ctx))
		}
	}
	if err := s.expect(); err != nil {
		return err
	}
	s.cfg.Group.ResetPeak()
	s.used, s.heardBy = false, ""
	return nil
}

// expect looks out for the end of the process that has said that it is ready.
func (s *Instance) expect() error {
	number := s.opening.tail(worker.Ready)
	program, err := strconv.Atoi(number)
	if err != nil || program < 1 {
		return fmt.Errorf("sandbox %s: its worker says to be process %q", s.cfg.ID, number)
	}
	s.program = program
	s.ended = s.cfg.Kernel.Expect(s.cmd.Process.Pid, program)
	return nil
}
