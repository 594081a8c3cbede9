package bundle

import (
	"runtime"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// namespaceFlags are those of clone that make namespaces.
var namespaceFlags = []uint64{
	unix.CLONE_NEWNS, unix.CLONE_NEWCGROUP, unix.CLONE_NEWUTS, unix.CLONE_NEWIPC,
	unix.CLONE_NEWUSER, unix.CLONE_NEWPID, unix.CLONE_NEWNET, unix.CLONE_NEWTIME,
}

// seccomp keeps programs from making namespaces, in which they would be root, and
// mounts, whose size they could choose. gVisor's kernel evaluates it at each of a
// program's system calls, so it is short.
func seccomp() *specs.LinuxSeccomp {
	denied := uint(unix.EPERM)
	arch := specs.ArchX86_64
	if runtime.GOARCH == "arm64" {
		arch = specs.ArchAARCH64
	}
	s := &specs.LinuxSeccomp{
		DefaultAction: specs.ActAllow,
		Architectures: []specs.Arch{arch},
		Syscalls: []specs.LinuxSyscall{
			{
				Names:  []string{"unshare", "setns", "mount", "umount2", "pivot_root", "chroot", "open_tree", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr"},
				Action: specs.ActErrno, ErrnoRet: &denied,
			},
			// Its flags lie in memory, out of a filter's reach. Where the kernel has
			// no such call the C library goes on with clone, and without a tracer this
			// action means just that; gVisor gives every refusal the error EPERM.
			{Names: []string{"clone3"}, Action: specs.ActTrace},
		},
	}
	for _, request := range []uint64{unix.PTRACE_SETOPTIONS, unix.PTRACE_SEIZE} { // a tracer could let it through
		s.Syscalls = append(s.Syscalls, specs.LinuxSyscall{
			Names: []string{"ptrace"}, Action: specs.ActErrno, ErrnoRet: &denied,
			Args: []specs.LinuxSeccompArg{{Index: 0, Value: request, Op: specs.OpEqualTo}},
		})
	}
	for _, flag := range namespaceFlags {
		s.Syscalls = append(s.Syscalls, specs.LinuxSyscall{
			Names: []string{"clone"}, Action: specs.ActErrno, ErrnoRet: &denied,
			Args: []specs.LinuxSeccompArg{{Index: 0, Value: flag, ValueTwo: flag, Op: specs.OpMaskedEqual}},
		})
	}
	return s
}
