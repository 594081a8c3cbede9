package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// measurement is one cell of the table.
type measurement struct {
	p50, p95  time.Duration
	perSecond float64
	failures  int
	// cpu is the CPU time of the sandboxes per call, 0 if it is not known, and own
	// the daemon's.
	cpu, own time.Duration
	// why is set instead of figures if nothing could be measured.
	why string
}

func (m measurement) String() string {
	if m.why != "" {
		return m.why
	}
	s := fmt.Sprintf("%s / %s, %.1f/s", millis(m.p50), millis(m.p95), m.perSecond)
	if m.cpu > 0 {
		s += fmt.Sprintf(", %s + %s ms CPU each", millis(m.cpu), millis(m.own))
	}
	if m.failures > 0 {
		s += fmt.Sprintf(", %d failed", m.failures)
	}
	return s
}

func millis(d time.Duration) string {
	ms := float64(d.Microseconds()) / 1000
	if ms < 10 {
		return fmt.Sprintf("%.1f", ms)
	}
	return fmt.Sprintf("%.0f", ms)
}

// samples collects latencies from many goroutines.
type samples struct {
	mu       sync.Mutex
	all      []time.Duration
	failures int
	first    error
}

func (s *samples) add(d time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.failures++
		if s.first == nil {
			s.first = err
			fmt.Fprintln(os.Stderr, "  a call failed:", err)
		}
		return
	}
	s.all = append(s.all, d)
}

func (s *samples) measurement(total time.Duration) measurement {
	if len(s.all) == 0 {
		return measurement{why: fmt.Sprintf("failed: %v", s.first)}
	}
	slices.Sort(s.all)
	return measurement{
		p50: s.all[len(s.all)/2], p95: s.all[len(s.all)*95/100],
		perSecond: float64(len(s.all)) / total.Seconds(), failures: s.failures,
	}
}

// inOrder makes n calls, one after another.
func inOrder(ctx context.Context, n int, call func(context.Context) error) measurement {
	var s samples
	begin := time.Now()
	for range n {
		if ctx.Err() != nil {
			break
		}
		start := time.Now()
		err := call(ctx)
		s.add(time.Since(start), err)
	}
	return s.measurement(time.Since(begin))
}

// closedLoop keeps n callers busy for d.
func closedLoop(ctx context.Context, s *samples, n int, d time.Duration, call func(context.Context) error) {
	begin := time.Now()
	var group sync.WaitGroup
	for range n {
		group.Go(func() {
			for time.Since(begin) < d && ctx.Err() == nil {
				start := time.Now()
				err := call(ctx)
				s.add(time.Since(start), err)
			}
		})
	}
	group.Wait()
}

// openLoop starts calls by the clock for d, whatever became of earlier ones.
func openLoop(ctx context.Context, s *samples, rate float64, d time.Duration, call func(context.Context) error) {
	tick := time.NewTicker(time.Duration(float64(time.Second) / max(rate, 0.1)))
	defer tick.Stop()
	begin := time.Now()
	var group sync.WaitGroup
	for time.Since(begin) < d {
		select {
		case <-ctx.Done():
			group.Wait()
			return
		case <-tick.C:
		}
		group.Go(func() {
			start := time.Now()
			err := call(ctx)
			s.add(time.Since(start), err)
		})
	}
	group.Wait()
}

// table keeps rows in the order in which they first appeared.
type table struct {
	rows  []string
	cells map[string]map[string]measurement
}

func newTable() *table { return &table{cells: map[string]map[string]measurement{}} }

func (t *table) add(row, column string, m measurement) {
	if t.cells[row] == nil {
		t.rows = append(t.rows, row)
		t.cells[row] = map[string]measurement{}
	}
	t.cells[row][column] = m
}

func (t *table) print(w io.Writer) {
	fmt.Fprint(w, "| |")
	for _, p := range programs {
		fmt.Fprintf(w, " %s |", p.name)
	}
	fmt.Fprintf(w, "\n|---|%s\n", strings.Repeat("---|", len(programs)))
	for _, row := range t.rows {
		fmt.Fprintf(w, "| %s |", row)
		for _, p := range programs {
			cell := "not measured"
			if m, ok := t.cells[row][p.name]; ok {
				cell = m.String()
			}
			fmt.Fprintf(w, " %s |", cell)
		}
		fmt.Fprintln(w)
	}
}

func loadAverage() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(data), " ")
	return first
}
