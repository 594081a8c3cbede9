package bundle

import (
	"encoding/binary"
	"runtime"

	"golang.org/x/sys/unix"
)

// denied are the calls by which a program could make namespaces and mounts; by name
// they stand in the profile of seccomp.go.
var denied = []uint32{
	unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_OPEN_TREE,
	unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
}

// Where a filter finds things, see seccomp_data in linux/seccomp.h; of the first
// argument the lower half.
const (
	dataNumber = 0
	dataArch   = 4
	dataArg0   = 16
)

// instruction is a struct sock_filter.
type instruction struct {
	code      uint16
	yes, no   uint8
	parameter uint32
}

// Filter is what seccomp does for a sandbox with one program, as the classic BPF that
// a process can ask for: the first process of a shared sandbox must be able to mount,
// so that each program's own process asks for it.
func Filter() []byte {
	arch := uint32(unix.AUDIT_ARCH_X86_64)
	if runtime.GOARCH == "arm64" {
		arch = unix.AUDIT_ARCH_AARCH64
	}
	var flags uint32
	for _, f := range namespaceFlags {
		flags |= uint32(f)
	}
	const (
		load  = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		set   = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
		end   = unix.BPF_RET | unix.BPF_K
		eperm = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	)
	program := []instruction{
		{load, 0, 0, dataArch}, {equal, 1, 0, arch}, {end, 0, 0, eperm},
		{load, 0, 0, dataNumber},
		// The C library goes on with clone.
		{equal, 0, 1, unix.SYS_CLONE3}, {end, 0, 0, unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
	}
	for _, number := range denied {
		program = append(program, instruction{equal, 0, 1, number}, instruction{end, 0, 0, eperm})
	}
	program = append(program,
		instruction{equal, 0, 3, unix.SYS_CLONE}, instruction{load, 0, 0, dataArg0},
		instruction{set, 0, 1, flags}, instruction{end, 0, 0, eperm},
		instruction{end, 0, 0, unix.SECCOMP_RET_ALLOW})
	var out []byte
	for _, i := range program {
		out = binary.NativeEndian.AppendUint16(out, i.code)
		out = append(out, i.yes, i.no)
		out = binary.NativeEndian.AppendUint32(out, i.parameter)
	}
	return out
}
