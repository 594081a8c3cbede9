package bundle

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// Nobody is the user and group of every program.
const Nobody = 65534

// Limits are what a program may use inside its sandbox. The memory and CPU
// limits are the cgroup's and do not stand here.
type Limits struct {
	// Processes bounds processes and threads together.
	Processes uint64
	// OpenFiles bounds file descriptors of one process.
	OpenFiles uint64
	// TmpBytes bounds /tmp, ShmBytes /dev/shm. Inodes have no bound of their
	// own: gVisor's tmpfs has one, but runsc passes only mode, size and owner on
	// to it. A file costs about 2 KiB of gVisor's memory, which the control
	// group bounds: some 200,000 of them under 512 MiB.
	TmpBytes, ShmBytes int64
	// AddressSpace bounds the virtual memory of one process in bytes; 0 is no
	// bound. It stands in for the memory limit where there is no cgroup.
	AddressSpace uint64
	// CPUs is the quota in cores, 0 for none. A program sees as many processors,
	// rounded up and at least two, instead of all the host's; the quota itself is
	// kept by the control group.
	CPUs float64
}

// Spec says what a sandbox runs and on what.
type Spec struct {
	// RootPath is the EROFS image or directory; EROFS tells which.
	RootPath string
	EROFS    bool
	// Args is the command; its first element is an absolute path in the root.
	Args   []string
	Limits Limits
	// Shared says that several programs run in it, one after another. Then the first
	// process is root within gVisor, with the few capabilities that it takes to give
	// each program a user and mounts of its own, and to kill what it leaves.
	Shared bool
}

// Environment is all that a program finds in its environment. One BLAS thread,
// because a sandbox has one core's worth of quota; a fixed hash seed, so that
// nothing depends on whether the sandbox was restored or booted.
func Environment() []string {
	return []string{
		"PATH=/usr/bin:/bin",
		"HOME=/tmp",
		"LANG=C.UTF-8",
		"PYTHONUTF8=1",
		"PYTHONHASHSEED=0",
		"OPENBLAS_NUM_THREADS=1",
		"OMP_NUM_THREADS=1",
		"MKL_NUM_THREADS=1",
		"NUMEXPR_NUM_THREADS=1",
		"MPLCONFIGDIR=/tmp",
	}
}

// OCI returns the specification as the typed value that gVisor reads.
func (s Spec) OCI() *specs.Spec {
	rlimits := []specs.POSIXRlimit{
		{Type: "RLIMIT_NPROC", Hard: s.Limits.Processes, Soft: s.Limits.Processes},
		{Type: "RLIMIT_NOFILE", Hard: s.Limits.OpenFiles, Soft: s.Limits.OpenFiles},
		{Type: "RLIMIT_CORE"},
		{Type: "RLIMIT_MEMLOCK"},
	}
	if n := s.Limits.AddressSpace; n > 0 {
		rlimits = append(rlimits, specs.POSIXRlimit{Type: "RLIMIT_AS", Hard: n, Soft: n})
	}
	spec := &specs.Spec{
		Version:  "1.1.0",
		Hostname: "sandbox",
		Root:     &specs.Root{Path: s.RootPath, Readonly: true},
		Process: &specs.Process{
			User:            specs.User{UID: Nobody, GID: Nobody},
			Args:            s.Args,
			Env:             Environment(),
			Cwd:             "/tmp",
			Capabilities:    &specs.LinuxCapabilities{},
			Rlimits:         rlimits,
			NoNewPrivileges: true,
		},
		Mounts: []specs.Mount{
			{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}},
			{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "noexec", "mode=755", "size=65536"}},
			tmpfs("/dev/shm", s.Limits.ShmBytes),
			tmpfs("/tmp", s.Limits.TmpBytes),
		},
		Linux: &specs.Linux{
			Seccomp: seccomp(),
			Namespaces: []specs.LinuxNamespace{
				{Type: specs.PIDNamespace}, {Type: specs.IPCNamespace}, {Type: specs.UTSNamespace},
				{Type: specs.MountNamespace}, {Type: specs.NetworkNamespace},
			},
		},
	}
	if s.Shared {
		can := []string{"CAP_SYS_ADMIN", "CAP_SETUID", "CAP_SETGID", "CAP_KILL"}
		spec.Process.User = specs.User{}
		spec.Process.Capabilities = &specs.LinuxCapabilities{Bounding: can, Effective: can, Permitted: can}
		spec.Linux.Seccomp = nil // see Filter
	}
	if s.Limits.CPUs > 0 {
		period := uint64(100_000)
		quota := int64(s.Limits.CPUs * float64(period))
		spec.Linux.Resources = &specs.LinuxResources{CPU: &specs.LinuxCPU{Period: &period, Quota: &quota}}
	}
	if s.EROFS {
		// The kernel inside gVisor mounts the image itself: no gofer process,
		// no host path. Root.Path is then only a place holder, an empty folder.
		spec.Root.Path = "rootfs"
		spec.Annotations = map[string]string{
			"dev.gvisor.spec.rootfs.source": s.RootPath,
			"dev.gvisor.spec.rootfs.type":   "erofs",
		}
	}
	return spec
}

func tmpfs(at string, bytes int64) specs.Mount {
	return specs.Mount{
		Destination: at, Type: "tmpfs", Source: "tmpfs",
		Options: []string{"nosuid", "nodev", "mode=1777", fmt.Sprintf("size=%d", bytes)},
	}
}

// Write makes dir a bundle.
func (s Spec) Write(dir string) error {
	if err := os.MkdirAll(filepath.Join(dir, "rootfs"), 0o755); err != nil {
		return fmt.Errorf("write bundle: %w", err)
	}
	data, err := json.MarshalIndent(s.OCI(), "", "  ")
	if err != nil {
		return fmt.Errorf("encode bundle: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), data, 0o644); err != nil {
		return fmt.Errorf("write bundle: %w", err)
	}
	return nil
}
