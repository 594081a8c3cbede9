package simpolicy

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
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

// writeReady says where the process serves, in a file that appears whole.
func writeReady(path, addr string) error {
	b, err := json.Marshal(map[string]any{"pid": os.Getpid(), "http": addr})
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".ready-*")
	if err != nil {
		return fmt.Errorf("--ready-file: %w", err)
	}
	_, err = f.Write(append(b, '\n'))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("--ready-file: %w", err), os.Remove(f.Name()))
	}
	return nil
}
