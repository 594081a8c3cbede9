package simpolicy

import (
	"fmt"
	"net/http"
	"sync"
)

// health is what /readyz says: serving always works, the trainer needs its brokers.
type health struct {
	mu  sync.Mutex
	err error // of the brokers; guarded by mu
}

func (h *health) kafka(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = err
}

func (h *health) readyz(w http.ResponseWriter, _ *http.Request) {
	h.mu.Lock()
	err := h.err
	h.mu.Unlock()
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintf(w, "trainer: kafka: %v\n", err)
		return
	}
	fmt.Fprintln(w, "ok")
}
