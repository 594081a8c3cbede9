package status

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

func TestNotesKeepTheirTimeAndBackendsTheirAddress(t *testing.T) {
	now := time.Unix(1000, 0)
	b := NewBoard(func() time.Time { return now })
	b.Backend("inference server", "http://user:secret@gpu:8000")
	b.Part("inference server", errors.New("connection refused"))
	now = now.Add(time.Minute)
	b.Part("inference server", errors.New("no route to host"))
	b.Note("restore", Note{Text: "reading 5,000 records"})
	s := b.Status()
	if len(s.GetNotes()) != 2 {
		t.Fatalf("notes %v, want two", s.GetNotes())
	}
	n := s.GetNotes()[0]
	if n.GetText() != "no route to host" || n.GetSince().AsTime().Unix() != 1000 || !n.GetBackendAway() || !n.GetNotReady() {
		t.Errorf("note %v, want the latest words, since the first, backend away and not ready", n)
	}
	if n.GetEndpoint() == "" || strings.Contains(n.GetEndpoint(), "secret") {
		t.Errorf("endpoint %q, want the address without its password", n.GetEndpoint())
	}
	if r := s.GetNotes()[1]; r.GetBackendAway() || r.GetNotReady() {
		t.Errorf("note %v, want one that is neither about readiness nor a backend", r)
	}
	b.Part("inference server", nil)
	b.Clear("restore")
	if s := b.Status(); len(s.GetNotes()) != 0 {
		t.Errorf("notes %v, want none", s.GetNotes())
	}
}

func TestErrorsAreCountedAndCut(t *testing.T) {
	b := NewBoard(nil)
	b.Failed("invalid", errors.New("first"))
	b.Failed("refused", errors.New(strings.Repeat("é", 1000)+"\xff"))
	e := b.Status().GetLastError()
	if e.GetCount() != 2 || e.GetErrorType() != "refused" || len(e.GetText()) > maxText+5 {
		t.Errorf("last error %v (%d bytes), want the second of two, cut", e, len(e.GetText()))
	}
}

func TestANilBoardTakesEverything(t *testing.T) {
	var b *Board
	b.Note("a", Note{})
	b.Clear("a")
	b.Backend("a", "b")
	b.Part("a", errors.New("x"))
	b.Failed("x", errors.New("x"))
	b.Oldest(nil)
	b.Readiness(nil)
}

// A change is written within a second, nothing new every Interval, an outage of the topic
// is said once, and the last record says that the process ended.
func TestReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBoard(nil)
		var got []*sluicev1.StageStatus
		var said []error
		var down atomic.Bool
		write := func(ctx context.Context, s *sluicev1.StageStatus) error {
			if down.Load() {
				<-ctx.Done()
				return ctx.Err()
			}
			if err := codec.Validate(s); err != nil {
				t.Error(err)
			}
			got = append(got, s)
			return nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			b.Report(ctx, "sampler", "a", write, func(err error) { said = append(said, err) })
		}()
		time.Sleep(35 * time.Second)
		synctest.Wait()
		if len(got) != 4 {
			t.Fatalf("%d reports in 35 s without a change, want 4", len(got))
		}
		b.Note("x", Note{Text: "y"})
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if len(got) != 5 || len(got[4].GetNotes()) != 1 {
			t.Fatalf("%d reports 2 s after a change, want 5, the last with the note", len(got))
		}
		down.Store(true)
		time.Sleep(time.Minute)
		down.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(said) != 2 || said[0] == nil || said[1] != nil {
			t.Errorf("said %v, want the outage once and its end once", said)
		}
		cancel()
		<-done
		if last := got[len(got)-1]; !last.GetStopped() || last.GetReady() {
			t.Errorf("the last report is %v, want one that says stopped", last)
		}
	})
}
