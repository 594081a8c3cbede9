package stage

import (
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/sluice-rl/sluice/stages/internal/status"
)

// Health is what a stage says of itself at /readyz and /healthz.
type Health struct {
	mu    sync.Mutex
	ready map[string]error
	live  map[string]error
	// first is called once, when the stage is ready for the first time.
	first func()
	// board shows what is not ready to others. May be nil.
	board *status.Board
}

// workPart holds readiness back until a stage has named the parts of its main work:
// those it names before, such as a server it asks first, do not make it ready.
const workPart = "work"

var errNotBegun = errors.New("not begun: waiting for what it needs first")

// Ready says whether a named part is usable: nil, or why not. The stage is ready
// when it has named at least one part and every part is usable.
func (h *Health) Ready(name string, err error) {
	h.mu.Lock()
	if h.ready == nil {
		h.ready = map[string]error{}
	}
	h.ready[name] = err
	first := h.takeFirst()
	h.mu.Unlock()
	h.board.Part(name, err)
	if first != nil {
		first()
	}
}

// Live says whether a named part still works at all: an error asks for a restart.
func (h *Health) Live(name string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.live == nil {
		h.live = map[string]error{}
	}
	h.live[name] = err
}

// onReady has f called when the stage is ready for the first time, at once if it is.
func (h *Health) onReady(f func()) {
	h.mu.Lock()
	h.first = f
	first := h.takeFirst()
	h.mu.Unlock()
	if first != nil {
		first()
	}
}

// takeFirst returns what to call now that the stage is ready, if it is and has not
// been called; mu is held.
func (h *Health) takeFirst() func() {
	if len(h.ready) == 0 || !allNil(h.ready) {
		return nil
	}
	f := h.first
	h.first = nil
	return f
}

// part is one line of a health report.
type part struct {
	Name  string `json:"name"`
	Error string `json:"error,omitempty"`
}

// IsReady says what /readyz would.
func (h *Health) IsReady() bool {
	ok, _ := h.report(false)
	return ok
}

func (h *Health) report(live bool) (ok bool, parts []part) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.ready
	if live {
		m = h.live
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		p := part{Name: name}
		if err := m[name]; err != nil {
			p.Error = err.Error()
		}
		parts = append(parts, p)
	}
	return allNil(m) && (live || len(m) > 0), parts
}

func allNil(m map[string]error) bool {
	for _, err := range m {
		if err != nil {
			return false
		}
	}
	return true
}
