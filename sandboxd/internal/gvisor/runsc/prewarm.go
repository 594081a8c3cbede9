package runsc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// runsc starts each sandbox's kernel with an empty environment, but lets a
// program of its installation run ahead of it, a "prewarmer" that it looks for in
// a folder of sidecars. Ours is a shell script that sets the Go runtime's
// garbage collector: a kernel that lives for one program need not collect while
// it is restored, which is a tenth of what a sandbox costs.
const (
	prewarmerName = "gvisor-sentry-prewarmer"
	sidecarsEnv   = "GVISOR_SIDECAR_BINARIES_DIR"
	sidecarsName  = "gvisor-bin"
)

// A restored kernel has allocated about 24 MiB. With kernelGrowth it collects for
// the first time at that size (4 MiB times kernelGrowth/100), and then whenever
// it has grown by as much again; the limit, a share of the sandbox's, makes it
// collect more often before the program lacks the memory. A smaller limit halves
// the speed of programs that make very many files.
const (
	kernelGrowth    = 600
	kernelShare     = 3
	minKernelMemory = 48 << 20
)

// ErrNoPrewarmer occurs when sandboxes' kernels cannot be tuned here.
var ErrNoPrewarmer = errors.New("gVisor's garbage collector is left as it is")

// Prewarm writes the prewarmer into a folder below dir and returns that folder,
// for Runtime.Sidecars. path is the runsc that it starts, memory the limit of a
// sandbox in bytes.
func Prewarm(dir, path string, memory int64) (string, error) {
	if _, err := os.Stat(filepath.Join(filepath.Dir(path), sidecarsName)); err == nil {
		return "", fmt.Errorf("%w: runsc has sidecars of its own", ErrNoPrewarmer)
	}
	if _, err := os.Stat("/bin/sh"); err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoPrewarmer, err)
	}
	folder := filepath.Join(dir, sidecarsName)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoPrewarmer, err)
	}
	limit := max(memory/kernelShare, minKernelMemory)
	// Its arguments are the binary, as a link that means the shell itself by
	// now, the name to give it, and the binary's arguments.
	script := filepath.Join(folder, prewarmerName)
	text := fmt.Sprintf("#!/bin/sh\nshift 2\nGOGC=%d GOMEMLIMIT=%d exec %s \"$@\"\n", kernelGrowth, limit, quote(path))
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoPrewarmer, err)
	}
	// A folder from which nothing may be executed would fail every sandbox.
	if out, err := exec.Command(script, "", "", "--version").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s: %w %s", ErrNoPrewarmer, script, err, out)
	}
	return folder, nil
}

// quote makes a word of the shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
