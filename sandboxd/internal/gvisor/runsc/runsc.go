// Package runsc knows gVisor's command: where it is, whether it works here, and
// the command lines that boot, checkpoint and restore a sandbox.
//
// Reads: the runsc binary. Writes: nothing itself. Promises: every command line
// of one Runtime carries the same flags, which gVisor demands of a checkpoint
// and its restores; no sandbox gets a network but its own loopback.
package runsc

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrNotFound occurs when no runsc is where it was looked for.
var ErrNotFound = errors.New("runsc not found")

// ErrUnusable occurs when there is a runsc that cannot work.
var ErrUnusable = errors.New("runsc cannot be used")

// Locate returns the runsc to use: explicit if given, else the one in the tools
// folder next to the daemon's own (…/bin/sandboxd and …/.tools/bin/runsc), else
// the first on PATH.
func Locate(explicit, executable string) (string, error) {
	if explicit != "" {
		return checkBinary(explicit)
	}
	var tried []string
	if executable != "" {
		beside := filepath.Join(filepath.Dir(executable), "..", ".tools", "bin", "runsc")
		if _, err := os.Stat(beside); err == nil {
			return checkBinary(beside)
		}
		tried = append(tried, beside)
	}
	if path, err := exec.LookPath("runsc"); err == nil {
		return checkBinary(path)
	}
	return "", fmt.Errorf("%w in %s or on PATH: run `make tools`, or name it with --runsc", ErrNotFound, strings.Join(tried, ", "))
}

// checkBinary refuses what would fail later with a message nobody understands.
func checkBinary(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnusable, err)
	}
	if _, err := os.Stat(abs); err != nil {
		return "", fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	file, err := elf.Open(abs)
	if err != nil {
		return "", fmt.Errorf("%w: %s is no ELF binary: %w", ErrUnusable, abs, err)
	}
	defer file.Close()
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			// It re-executes itself inside an empty root, where no dynamic
			// loader exists.
			return "", fmt.Errorf("%w: %s is dynamically linked; build it with CGO_ENABLED=0", ErrUnusable, abs)
		}
	}
	return abs, nil
}

// Runtime builds command lines. Path, Platform and SharedRoot are required.
type Runtime struct {
	Path     string
	Platform string
	// SharedRoot is where runsc keeps what sandboxes share.
	SharedRoot string
	// Rootless runs every command in a user namespace of its own, where the
	// daemon's user is root. runsc's own rootless mode cannot restore.
	Rootless bool
	// ExitReports is the configuration that makes sandboxes report the exits
	// of their programs, see package exitcall; "" for none.
	ExitReports string
	// Sidecars is the folder that Prewarm made; "" for none.
	Sidecars string
}

// flags come before the sub-command. Each sandbox has a root folder of its own:
// an attached restore leaves state files there, and removing it removes them.
func (r Runtime) flags(root, log string) []string {
	flags := []string{
		r.Path,
		"--root=" + root,
		"--shared-root=" + r.SharedRoot,
		"--log=" + log,
		"--panic-log=" + PanicFile(root),
		// A signal to the kernel is passed on to the program, which then seems to
		// have died of it. A fault is passed on to nobody; for the others see
		// package exitcall.
		fmt.Sprintf("--panic-signal=%d", syscall.SIGSEGV),
		"--platform=" + r.Platform,
		"--network=none",
		"--oci-seccomp",
		"--cpu-num-from-quota",
		"--ignore-cgroups", // sandboxd has its own, see package cgroup
		"--overlay2=none",
		"--host-uds=none",
		"--host-settings=ignore",
		// The default pins a shared namespace by a mount on the host, which
		// outlives everybody. (Only a directory root has a gofer at all.)
		"--gofer-network-namespace=new",
	}
	if r.ExitReports != "" {
		flags = append(flags, "--pod-init-config="+r.ExitReports)
	}
	return flags
}

// Run is the command line that boots a bundle and stays attached to it.
func (r Runtime) Run(root, bundle, id string) []string {
	return append(r.flags(root, LogFile(root)), "run", "--bundle="+bundle, id)
}

// Checkpoint is the command line that saves a running sandbox and ends it.
func (r Runtime) Checkpoint(root, image, id string) []string {
	return append(r.flags(root, LogFile(root)+".checkpoint"), "checkpoint", "--image-path="+image, id)
}

// Restore is the command line that makes a sandbox from a saved one and stays
// attached to it.
func (r Runtime) Restore(root, image, bundle, id string) []string {
	return append(r.flags(root, LogFile(root)), "restore", "--image-path="+image, "--bundle="+bundle, id)
}

// Env is the environment of runsc itself; a sandbox never sees it.
func (r Runtime) Env() []string {
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	if r.Sidecars != "" {
		env = append(env, sidecarsEnv+"="+r.Sidecars)
	}
	return env
}

// Attr returns what every runsc process is started with.
func (r Runtime) Attr() *syscall.SysProcAttr {
	if !r.Rootless {
		return &syscall.SysProcAttr{}
	}
	return &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
}

// Version asks runsc who it is.
func (r Runtime) Version(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, r.Path, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%w: %s --version: %w", ErrUnusable, r.Path, err)
	}
	return strings.Join(strings.Fields(string(out)), " "), nil
}
