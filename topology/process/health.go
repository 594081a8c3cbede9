package process

import (
	"errors"
	"maps"
	"slices"
	"sync"
)

// Health is what a program says of itself at /readyz. The zero value is not ready.
type Health struct {
	mu    sync.Mutex
	ready map[string]error
	// first is called once, when the program is ready for the first time.
	first func()
	// watch is told of every Ready. May be nil.
	watch func(name string, err error)
}

// workPart holds readiness back until a program has named the parts of its main work:
// those it names before, such as a server it asks first, do not make it ready.
const workPart = "work"

var errNotBegun = errors.New("not begun: waiting for what it needs first")

// Ready says whether a named part is usable: nil, or why not. The program is
// ready when it has named at least one part and every part is usable.
func (h *Health) Ready(name string, err error) {
	h.mu.Lock()
	if h.ready == nil {
		h.ready = map[string]error{}
	}
	h.ready[name] = err
	first, watch := h.takeFirst(), h.watch
	h.mu.Unlock()
	if watch != nil {
		watch(name, err)
	}
	if first != nil {
		first()
	}
}

// Begun says that all parts of the program's main work have been named to Ready.
func (h *Health) Begun() { h.Ready(workPart, nil) }

func (h *Health) begun() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	err, named := h.ready[workPart]
	return named && err == nil
}

// Watch has f told of every part's readiness, from what is known now on.
func (h *Health) Watch(f func(name string, err error)) {
	h.mu.Lock()
	known := maps.Clone(h.ready)
	h.watch = f
	h.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(known)) {
		f(name, known[name])
	}
}

// onReady has f called when the program is ready for the first time, at once if it is.
func (h *Health) onReady(f func()) {
	h.mu.Lock()
	h.first = f
	first := h.takeFirst()
	h.mu.Unlock()
	if first != nil {
		first()
	}
}

// takeFirst returns what to call now that the program is ready, if it is and has not
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
	ok, _ := h.report()
	return ok
}

func (h *Health) report() (ok bool, parts []part) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(h.ready)) {
		p := part{Name: name}
		if err := h.ready[name]; err != nil {
			p.Error = err.Error()
		}
		parts = append(parts, p)
	}
	return len(h.ready) > 0 && allNil(h.ready), parts
}

func allNil(m map[string]error) bool {
	for _, err := range m {
		if err != nil {
			return false
		}
	}
	return true
}
