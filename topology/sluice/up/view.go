package up

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sluice-rl/sluice/topology/sluice/depth"
	"github.com/sluice-rl/sluice/topology/sluice/terminal"
)

const (
	redrawEvery  = 500 * time.Millisecond
	measureEvery = 2 * time.Second
	saveEvery    = time.Second
	// plainEvery is how often depths are said where nothing is redrawn.
	plainEvery = 15 * time.Second
)

// watch shows how the run goes until its last step is answered, a process cannot be
// kept running, or the context ends.
func (s *system) watch(ctx context.Context, p *progress, meter *depth.Meter) error {
	// Measuring waits for brokers; the view and Ctrl-C must not.
	measured := make(chan depth.Snapshot, 1)
	measuring, stop := context.WithCancel(ctx)
	defer stop()
	go measureOn(measuring, meter, measured)

	redraw := time.NewTicker(redrawEvery)
	defer redraw.Stop()
	v := view{s: s, p: p, saidDepth: time.Now()}
	began, before, saved := time.Now(), s.run.Seconds, time.Now()
	for {
		select {
		case <-ctx.Done():
			return ErrStopped
		case err := <-s.sup.Failed():
			return err
		case v.depth = <-measured:
		case <-redraw.C:
		}
		// How long it has been running is remembered for a run that goes on, however this
		// process ends; and a folder that somebody removed is noticed.
		s.run.Seconds = before + time.Since(began).Seconds()
		if time.Since(saved) > saveEvery {
			saved = time.Now()
			if err := s.dir.save(s.run); err != nil {
				return err
			}
		}
		v.show()
		p.mu.Lock()
		done := p.answered >= s.run.Steps
		p.mu.Unlock()
		if done {
			return nil
		}
	}
}

func measureOn(ctx context.Context, meter *depth.Meter, to chan<- depth.Snapshot) {
	for ctx.Err() == nil {
		look, cancel := context.WithTimeout(ctx, 10*time.Second)
		now, err := meter.Measure(look)
		cancel()
		if err == nil {
			select {
			case to <- now:
			case <-ctx.Done():
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(measureEvery):
		}
	}
}

// view is what is on the screen.
type view struct {
	s         *system
	p         *progress
	depth     depth.Snapshot
	saidStep  uint64
	saidDepth time.Time
}

func (v *view) show() {
	v.p.mu.Lock()
	defer v.p.mu.Unlock()
	if v.s.screen.InPlace() {
		v.s.screen.redraw(v.lines())
		return
	}
	for v.saidStep < v.p.answered {
		v.saidStep++
		r := v.p.steps[v.saidStep]
		if r == nil {
			continue
		}
		v.s.screen.Say("step %d of %d: reward mean %+.3f over %d trajectories; %d trajectories, %d code calls so far",
			v.saidStep, v.s.run.Steps, r.mean(), r.graded, v.p.members, v.p.codeCalls)
	}
	if time.Since(v.saidDepth) > plainEvery && len(v.depth.Work) > 0 {
		v.saidDepth = time.Now()
		v.s.screen.Say("waiting: %s", strings.Join(depths(v.depth), ", "))
	}
}

func (v *view) lines() []string {
	p := v.p
	elapsed := time.Duration(v.s.run.Seconds * float64(time.Second))
	out := []string{
		fmt.Sprintf("run %s   %s   policy version %d", v.s.run.RunID, elapsed.Round(time.Second), p.version),
	}
	out = append(out, wrapped(
		fmt.Sprintf("step %d of %d %s   %d trajectories,", p.answered, v.s.run.Steps, bar(p.answered, v.s.run.Steps), p.members),
		fmt.Sprintf("%d code calls,", p.codeCalls), fmt.Sprintf("%d dead letters", p.deadLetters))...)
	if len(p.steps) > 0 {
		last := slices.Max(slices.Collect(maps.Keys(p.steps)))
		out = append(out, fmt.Sprintf("mean reward %+.3f in step %d   %s", p.steps[last].mean(), last, sparkline(p.steps, v.s.run.Steps)))
	}
	if len(v.depth.Work) > 0 {
		waiting := depths(v.depth)
		waiting[0] = "waiting " + waiting[0]
		out = append(out, wrapped(waiting...)...)
	}
	return out
}

// lineWidth is what a line of the view may take: a terminal cuts off what is beyond.
const lineWidth = 78

// wrapped puts parts side by side, and on a further line, indented, where they would not
// fit. No part is broken.
func wrapped(parts ...string) []string {
	var lines []string
	for _, part := range parts {
		last := len(lines) - 1
		switch {
		case last < 0:
			lines = append(lines, part)
		case utf8.RuneCountInString(lines[last])+2+utf8.RuneCountInString(part) > lineWidth:
			lines = append(lines, "    "+part)
		default:
			lines[last] += "  " + part
		}
	}
	return lines
}

// flow is the topics in the order in which work passes through them.
var flow = []string{"prompts", "code-calls", "code-results", "trajectories", "scored", "grouped"}

// depths says per topic how much the slowest of its stages has still to do. The
// metrics-writer, which reads nearly every topic and delays nobody, stands by itself.
func depths(s depth.Snapshot) []string {
	var out []string
	for _, topic := range flow {
		var most depth.Work
		for _, w := range s.Work {
			if w.Topic == topic && w.Stage != metrics && w.Depth > most.Depth {
				most = w
			}
		}
		sign := ""
		if most.UpperBound {
			sign = "≤"
		}
		out = append(out, fmt.Sprintf("%s %s%d", topic, sign, most.Depth))
	}
	return append(out, fmt.Sprintf("for metrics %d", s.Waiting(metrics)))
}

func bar(done, of uint64) string {
	const width = 20
	full := int(min(done, of) * width / max(of, 1))
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", width-full) + "]"
}

// sparkline draws the mean reward of the last steps, from -1 to +1.
func sparkline(steps map[uint64]*stepReward, of uint64) string {
	const levels = "▁▂▃▄▅▆▇█"
	var b strings.Builder
	for _, step := range slices.Sorted(maps.Keys(steps)) {
		if of > 60 && step+60 < of && step+60 < slices.Max(slices.Collect(maps.Keys(steps))) {
			continue
		}
		level := int((steps[step].mean() + 1) / 2 * 8)
		b.WriteRune([]rune(levels)[max(0, min(level, 7))])
	}
	return b.String()
}

// waitDrained waits until every stage has done its work, so that the final table is
// whole. It says so if it is not.
func (s *system) waitDrained(ctx context.Context, meter *depth.Meter) error {
	deadline := time.Now().Add(s.o.DrainFor)
	var last depth.Snapshot
	for {
		look, cancel := context.WithTimeout(ctx, 10*time.Second)
		now, err := meter.Measure(look)
		cancel()
		switch {
		case ctx.Err() != nil:
			return ErrStopped
		case err == nil && now.Waiting() == 0:
			return nil
		case err == nil:
			last = now
		}
		if time.Now().After(deadline) {
			var left []string
			for _, w := range last.Work {
				if w.Depth > 0 {
					left = append(left, fmt.Sprintf("%d records of %s before %s", w.Depth, w.Topic, w.Stage))
				}
			}
			if err != nil {
				left = append(left, terminal.Escape(err.Error()))
			}
			s.screen.Say("not everything was done within %v (--drain), so the figures below may be incomplete: %s", s.o.DrainFor, strings.Join(left, "; "))
			return nil
		}
		select {
		case <-ctx.Done():
			return ErrStopped
		case err := <-s.sup.Failed():
			return err
		case <-time.After(200 * time.Millisecond):
		}
	}
}
