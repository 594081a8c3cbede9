package command

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/sluice-rl/sluice/topology/sluice/depth"
	"github.com/sluice-rl/sluice/topology/sluice/presence"
	"github.com/sluice-rl/sluice/topology/sluice/terminal"
)

// view is what one look found.
type view struct {
	depth.Snapshot
	Processes []presence.Process
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
	text := v.table() + v.remarks()
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
	live := map[string]int{}
	for _, p := range v.Processes {
		if p.Live(v.At) {
			live[p.GetStage()]++
		}
	}
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
