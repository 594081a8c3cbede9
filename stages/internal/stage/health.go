package stage

import "sync"

// Health is what a stage says of itself at /readyz and /healthz.
type Health struct {
	mu    sync.Mutex
	ready map[string]error
	live  map[string]error
}

// Ready says whether a named part is usable: nil, or why not. The stage is ready
// when every part named so far is.
func (h *Health) Ready(name string, err error) { h.set(&h.ready, name, err) }

// Live says whether a named part still works at all: an error asks for a restart.
func (h *Health) Live(name string, err error) { h.set(&h.live, name, err) }

func (h *Health) set(m *map[string]error, name string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if *m == nil {
		*m = map[string]error{}
	}
	(*m)[name] = err
}
