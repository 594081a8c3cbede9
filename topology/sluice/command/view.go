package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/topology/sluice/depth"
	"github.com/sluice-rl/sluice/topology/sluice/presence"
	"github.com/sluice-rl/sluice/topology/sluice/terminal"
)

// view is what one look found.
type view struct {
	depth.Snapshot
	Processes []presence.Process
	// Patience is after what time a step that does not move is an alarm.
	Patience time.Duration
}

// errAlarm: --check found something that needs a person.
var errAlarm = errors.New("alarm")

// check says what needs a person: a step that does not move, work before a stage of which
// no process is live, a backend that is away.
func (v view) check() error {
	var alarms []error
	live := v.live()
	for _, w := range v.Work {
		if w.Depth > 0 && live[w.Stage] == 0 {
			alarms = append(alarms, fmt.Errorf("%w: %d records of %s wait for %s, of which no process is live", errAlarm, w.Depth, w.Topic, w.Stage))
		}
	}
	for _, p := range v.Processes {
		if !p.Live(v.At) {
			continue
		}
		for _, n := range p.GetNotes() {
			if n.GetBackendAway() {
				alarms = append(alarms, fmt.Errorf("%w: %s: %s is away", errAlarm, p.Name(), n.GetName()))
			}
		}
		for _, s := range p.GetSteps() {
			if idle := idleOf(p, s); idle >= v.Patience {
				alarms = append(alarms, fmt.Errorf("%w: run %s, step %d has not moved for %s", errAlarm, s.GetRunId(), s.GetStep(), age(idle)))
			}
		}
	}
	return errors.Join(alarms...)
}

func (v view) live() map[string]int {
	live := map[string]int{}
	for _, p := range v.Processes {
		if p.Live(v.At) {
			live[p.GetStage()]++
		}
	}
	return live
}

// idleOf is how long a step has not moved, by the clocks of those who wrote of it.
func idleOf(p presence.Process, s *sluicev1.StepProgress) time.Duration {
	return p.GetReportedAt().AsTime().Sub(s.GetMovedAt().AsTime())
}

// waits says in a line each what the open steps wait for.
func (v view) waits() string {
	var text string
	for _, p := range v.Processes {
		if !p.Live(v.At) {
			continue
		}
		for _, s := range p.GetSteps() {
			line := fmt.Sprintf("run %s: step %d", s.GetRunId(), s.GetStep())
			if s.GetIncarnation() > 0 {
				line += fmt.Sprintf(" (incarnation %d)", s.GetIncarnation())
			}
			idle := idleOf(p, s)
			switch {
			case s.GetBatched():
				line += ": batched, waiting for the trainer since " + age(idle)
			case s.GetGroups() == 0:
				line += ": no group closed yet, last member came " + age(idle) + " ago"
			default:
				line += fmt.Sprintf(": %d of %d groups closed, waiting for slot %s since %s", s.GetGroupsClosed(), s.GetGroups(), slots(s), age(idle))
			}
			if idle >= v.Patience {
				line = "ALARM " + line + ": it does not move"
			}
			text += terminal.Escape(line) + "\n"
		}
	}
	if text != "" {
		return "\n" + text
	}
	return ""
}

// slots names the open slots of a step.
func slots(s *sluicev1.StepProgress) string {
	var names []string
	for _, slot := range s.GetOpenSlots() {
		names = append(names, fmt.Sprint(slot))
	}
	if open := int(s.GetGroups()) - int(s.GetGroupsClosed()); open > len(names) {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
}

// MarshalJSON adds to a measurement what the processes say, by the names of the contracts.
func (v view) MarshalJSON() ([]byte, error) {
	processes := make([]json.RawMessage, len(v.Processes))
	for i, p := range v.Processes {
		b, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(p.StageStatus)
		if err != nil {
			return nil, err
		}
		processes[i] = b
	}
	return json.Marshal(struct {
		depth.Snapshot
		Processes []json.RawMessage `json:"processes"`
	}{v.Snapshot, processes})
}

func show(out io.Writer, block *terminal.Block, v view, asJSON, watch bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(v)
	}
	text := v.table() + v.waits() + v.remarks()
	if watch && block.InPlace() {
		block.Draw(lines(text))
		return nil
	}
	fmt.Fprint(out, text)
	if watch {
		fmt.Fprintln(out)
	}
	return nil
}

func (v view) table() string {
	live := v.live()
	var rows [][]string
	for i, w := range v.Work {
		d := fmt.Sprint(w.Depth)
		if w.UpperBound {
			d = "≤" + d
		}
		rate := "-"
		if w.Rate != nil {
			rate = fmt.Sprintf("%.1f/s", *w.Rate)
		}
		members := ""
		if i == 0 || v.Work[i-1].Stage != w.Stage {
			members = fmt.Sprint(live[w.Stage])
		}
		rows = append(rows, []string{w.Stage, members, w.Topic, d, rate})
	}
	return terminal.Table([]string{"stage", "live", "reads", "depth", "rate"}, rows)
}

// remarks is what the processes say, a line each.
func (v view) remarks() string {
	var text string
	say := func(format string, args ...any) { text += terminal.Escape(fmt.Sprintf(format, args...)) + "\n" }
	for _, p := range v.Processes {
		if p.GetStopped() {
			continue
		}
		if p.Silent(v.At) {
			say("%s: silent for %s, and it did not say that it ended", p.Name(), age(v.At.Sub(p.Heard)))
			continue
		}
		said := p.GetReportedAt().AsTime()
		for _, n := range p.GetNotes() {
			where := ""
			if n.GetEndpoint() != "" {
				where = " (" + n.GetEndpoint() + ")"
			}
			say("%s: %s%s: %s, for %s", p.Name(), n.GetName(), where, n.GetText(), age(said.Sub(n.GetSince().AsTime())))
		}
		if o := p.GetOldest(); o != nil {
			say("%s: the oldest record in hand, %s/%d@%d, has waited for %s in %d attempts: %s", p.Name(),
				o.GetTopic(), o.GetPartition(), o.GetOffset(), age(said.Sub(o.GetSince().AsTime())), o.GetAttempts(), o.GetText())
		}
		if e := p.GetLastError(); e != nil {
			say("%s: last of %d errors, %s ago: %s: %s", p.Name(), e.GetCount(), age(said.Sub(e.GetAt().AsTime())), e.GetErrorType(), e.GetText())
		}
	}
	if text != "" {
		return "\n" + text
	}
	return ""
}

// age is a duration as people say it: 40s, 12m, 3h20m.
func age(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < 2*time.Minute:
		return d.Round(time.Second).String()
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}
