package runsc

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The prewarmer becomes the runtime, with its arguments and the collector's
// settings, whatever the path looks like.
func TestPrewarm(t *testing.T) {
	for memory, limit := range map[int64]string{128 << 20: "50331648", 384 << 20: "134217728"} {
		dir := filepath.Join(t.TempDir(), `it's "odd" $HOME`)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		runtime := filepath.Join(dir, "runsc")
		if err := os.WriteFile(runtime, []byte("#!/bin/sh\necho \"$GOGC $GOMEMLIMIT $*\"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		folder, err := Prewarm(t.TempDir(), runtime, memory)
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(filepath.Join(folder, prewarmerName), "/proc/self/exe", "runsc-sandbox", "--x=1 2", "boot").CombinedOutput()
		if want := "600 " + limit + " --x=1 2 boot\n"; err != nil || string(out) != want {
			t.Errorf("memory %d: got %q, %v; want %q", memory, out, err, want)
		}
	}
}

func TestPrewarmWhereNothingCanBeStarted(t *testing.T) {
	if _, err := Prewarm(t.TempDir(), filepath.Join(t.TempDir(), "no-runsc"), 512<<20); !errors.Is(err, ErrNoPrewarmer) {
		t.Errorf("got %v, want ErrNoPrewarmer", err)
	}
}

func TestPrewarmLeavesAnInstallationAlone(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, sidecarsName), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Prewarm(t.TempDir(), filepath.Join(dir, "runsc"), 512<<20); !errors.Is(err, ErrNoPrewarmer) {
		t.Errorf("got %v, want ErrNoPrewarmer", err)
	}
}
