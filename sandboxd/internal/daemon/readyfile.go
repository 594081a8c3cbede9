package daemon

import (
	"encoding/json"
	"fmt"
	"os"
)

// writeReady says in a file that the daemon can run programs. It is written beside
// and renamed, so that a reader never sees half of it; whoever starts the daemon
// compares the pid, so that a killed predecessor's file is not believed.
func writeReady(path, socket string) error {
	b, err := json.Marshal(map[string]any{"pid": os.Getpid(), "socket": socket})
	if err != nil {
		return fmt.Errorf("ready file: %w", err)
	}
	beside := fmt.Sprintf("%s.%d.tmp", path, os.Getpid())
	if err := os.WriteFile(beside, append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("ready file: %w", err)
	}
	if err := os.Rename(beside, path); err != nil {
		os.Remove(beside)
		return fmt.Errorf("ready file: %w", err)
	}
	return nil
}
