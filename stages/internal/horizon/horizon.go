package horizon

import (
	"slices"
)

// Run is one incarnation of a run.
type Run struct {
	ID          string
	Incarnation uint32
}

// Horizon remembers the keys of finished work for a number of steps. It is not safe
// for concurrent use.
type Horizon struct {
	keep uint64
	runs map[Run]*window
}

type window struct {
	highest uint64
	keys    map[uint64][]string
}

// New keeps what belongs to the highest step of a run and to the keep-1 steps before
// it. A keep of 0 is taken for 1.
func New(keep uint64) *Horizon {
	return &Horizon{keep: max(1, keep), runs: map[Run]*window{}}
}

// Past says whether a step lies behind the horizon.
func (h *Horizon) Past(run Run, step uint64) bool {
	w := h.runs[run]
	return w != nil && w.past(step, h.keep)
}

func (w *window) past(step, keep uint64) bool { return w.highest >= keep && step <= w.highest-keep }

// See notes that there is work of a step. It returns the keys that may be forgotten
// since the horizon moved, sorted; they are not returned again.
func (h *Horizon) See(run Run, step uint64) (forget []string) {
	w := h.runs[run]
	if w == nil {
		w = &window{keys: map[uint64][]string{}}
		h.runs[run] = w
	}
	if step <= w.highest {
		return nil
	}
	w.highest = step
	for s, keys := range w.keys {
		if w.past(s, h.keep) {
			forget = append(forget, keys...)
			delete(w.keys, s)
		}
	}
	slices.Sort(forget)
	return forget
}

// Keep notes the key of finished work until its step falls behind the horizon. If it
// has done so already Keep returns false: the key may be forgotten at once.
func (h *Horizon) Keep(run Run, step uint64, key string) bool {
	if h.Past(run, step) {
		return false
	}
	w := h.runs[run]
	if w == nil {
		h.See(run, step)
		w = h.runs[run]
	}
	w.keys[step] = append(w.keys[step], key)
	return true
}
