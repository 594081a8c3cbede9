package bundle

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

var example = Spec{
	RootPath: "/images/root.erofs", EROFS: true, Args: []string{"/usr/bin/python3", "-c", "pass"},
	Limits: Limits{Processes: 64, OpenFiles: 256, TmpBytes: 64 << 20, ShmBytes: 16 << 20},
}

// Every promise of the package, read off the specification.
func TestSpecificationKeepsItsPromises(t *testing.T) {
	t.Setenv("SECRET", "hunter2")
	for name, spec := range map[string]Spec{"erofs": example, "directory": {RootPath: "/images/root", Args: example.Args, Limits: example.Limits}} {
		t.Run(name, func(t *testing.T) {
			s := spec.OCI()
			p := s.Process
			if p.User.UID != Nobody || p.User.GID != Nobody || len(p.User.AdditionalGids) > 0 {
				t.Errorf("user is %+v, want nobody", p.User)
			}
			if c := p.Capabilities; c == nil || len(c.Bounding)+len(c.Effective)+len(c.Permitted)+len(c.Inheritable)+len(c.Ambient) > 0 {
				t.Errorf("capabilities are %+v, want an empty set (nil would mean the runtime's default)", c)
			}
			if !p.NoNewPrivileges || !s.Root.Readonly || p.Terminal {
				t.Errorf("no new privileges %v, read-only root %v, terminal %v", p.NoNewPrivileges, s.Root.Readonly, p.Terminal)
			}
			if env := strings.Join(p.Env, " "); strings.Contains(env, "hunter2") {
				t.Errorf("the host's environment shows: %s", env)
			}
			for _, m := range s.Mounts {
				if m.Type != "tmpfs" && m.Type != "proc" {
					t.Errorf("%s is a mount of type %s from %s: only the sandbox's own file systems are allowed", m.Destination, m.Type, m.Source)
				}
				if m.Type == "tmpfs" && !slices.ContainsFunc(m.Options, func(o string) bool { return strings.HasPrefix(o, "size=") }) {
					t.Errorf("%s has no size limit: %v", m.Destination, m.Options)
				}
			}
			for _, want := range []specs.LinuxNamespaceType{specs.PIDNamespace, specs.NetworkNamespace, specs.MountNamespace, specs.IPCNamespace, specs.UTSNamespace} {
				if !slices.ContainsFunc(s.Linux.Namespaces, func(n specs.LinuxNamespace) bool { return n.Type == want && n.Path == "" }) {
					t.Errorf("no %s namespace of its own", want)
				}
			}
			limits := map[string]uint64{}
			for _, l := range p.Rlimits {
				if l.Soft != l.Hard {
					t.Errorf("%s can be raised from %d to %d", l.Type, l.Soft, l.Hard)
				}
				limits[l.Type] = l.Hard
			}
			if limits["RLIMIT_NPROC"] != 64 || limits["RLIMIT_NOFILE"] != 256 || limits["RLIMIT_CORE"] != 0 {
				t.Errorf("limits are %v", limits)
			}
			if _, ok := limits["RLIMIT_AS"]; ok {
				t.Error("address space is bounded without being asked for")
			}
		})
	}
}

func TestErofsRootIsMountedByGVisorItself(t *testing.T) {
	s := example.OCI()
	if s.Annotations["dev.gvisor.spec.rootfs.source"] != example.RootPath || s.Annotations["dev.gvisor.spec.rootfs.type"] != "erofs" || s.Root.Path != "rootfs" {
		t.Errorf("annotations %v, root %+v", s.Annotations, s.Root)
	}
}

// A restore is refused if its specification differs by a byte.
func TestSameInputsGiveTheSameBytes(t *testing.T) {
	var files [2][]byte
	for i := range files {
		dir := t.TempDir()
		if err := example.Write(dir); err != nil {
			t.Fatal(err)
		}
		var err error
		if files[i], err = os.ReadFile(filepath.Join(dir, "config.json")); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Errorf("the bundles differ:\n%s\n%s", files[0], files[1])
	}
}

// gVisor shows a program as many processors as its quota has, not the host's.
func TestTheQuotaIsWhatAProgramSees(t *testing.T) {
	if r := example.OCI().Linux.Resources; r != nil {
		t.Errorf("resources %+v without a quota", r)
	}
	limited := example
	limited.Limits.CPUs = 1.5
	if cpu := limited.OCI().Linux.Resources.CPU; *cpu.Quota != 150_000 || *cpu.Period != 100_000 {
		t.Errorf("quota %d of %d, want 1.5 cores", *cpu.Quota, *cpu.Period)
	}
}

// Every way to a namespace or a mount is refused.
func TestSeccompProfile(t *testing.T) {
	p := example.OCI().Linux.Seccomp
	if p == nil || p.DefaultAction != specs.ActAllow {
		t.Fatalf("profile %+v", p)
	}
	refused, flags := map[string]bool{}, uint64(0)
	for _, s := range p.Syscalls {
		for _, name := range s.Names {
			if s.Action == specs.ActAllow {
				t.Errorf("%s is allowed by name", name)
			}
			if len(s.Args) == 0 {
				refused[name] = true
			} else if name == "clone" {
				flags |= s.Args[0].Value
			}
		}
	}
	for _, name := range []string{"unshare", "setns", "mount", "umount2", "fsopen", "fsmount", "move_mount", "open_tree", "pivot_root", "chroot", "clone3"} {
		if !refused[name] {
			t.Errorf("%s is not refused", name)
		}
	}
	if want := uint64(0x7e020080); flags != want {
		t.Errorf("clone is refused with %#x, want %#x", flags, want)
	}
}

// The first process of a shared sandbox has what it needs to keep programs apart, and
// nothing else; its programs get the same refusals from a filter of their own.
func TestSharedSpecification(t *testing.T) {
	shared := example
	shared.Shared = true
	s := shared.OCI()
	p := s.Process
	want := []string{"CAP_SYS_ADMIN", "CAP_SETUID", "CAP_SETGID", "CAP_KILL"}
	if p.User.UID != 0 || !slices.Equal(p.Capabilities.Effective, want) || !slices.Equal(p.Capabilities.Bounding, want) || len(p.Capabilities.Inheritable)+len(p.Capabilities.Ambient) > 0 {
		t.Errorf("user %+v with %+v", p.User, p.Capabilities)
	}
	if !p.NoNewPrivileges || !s.Root.Readonly || s.Linux.Seccomp != nil {
		t.Errorf("no new privileges %v, read-only root %v, profile %v", p.NoNewPrivileges, s.Root.Readonly, s.Linux.Seccomp)
	}
}

func TestFilter(t *testing.T) {
	const allow, eperm, enosys = unix.SECCOMP_RET_ALLOW, unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM), unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	arch := uint32(unix.AUDIT_ARCH_X86_64)
	if runtime.GOARCH == "arm64" {
		arch = unix.AUDIT_ARCH_AARCH64
	}
	for name, tt := range map[string]struct {
		arch, number, arg0, want uint32
	}{
		"getpid":                     {arch, unix.SYS_GETPID, 0, allow},
		"unshare":                    {arch, unix.SYS_UNSHARE, 0, eperm},
		"mount_setattr":              {arch, unix.SYS_MOUNT_SETATTR, 0, eperm},
		"chroot":                     {arch, unix.SYS_CHROOT, 0, eperm},
		"fork":                       {arch, unix.SYS_CLONE, uint32(unix.SIGCHLD), allow},
		"a thread":                   {arch, unix.SYS_CLONE, 0x3d0f00, allow},
		"a namespace":                {arch, unix.SYS_CLONE, unix.CLONE_NEWUSER, eperm},
		"a namespace among others":   {arch, unix.SYS_CLONE, unix.CLONE_NEWNS | uint32(unix.SIGCHLD), eperm},
		"clone3":                     {arch, unix.SYS_CLONE3, 0, enosys},
		"a call of another machine":  {arch + 1, unix.SYS_GETPID, 0, eperm},
		"a number that is far above": {arch, 1 << 30, 0, allow}, // gVisor has no such call
	} {
		if got := evaluate(t, Filter(), tt.arch, tt.number, tt.arg0); got != tt.want {
			t.Errorf("%s: %#x, want %#x", name, got, tt.want)
		}
	}
}

// evaluate is what a kernel does with a filter.
func evaluate(t *testing.T, code []byte, arch, number, arg0 uint32) uint32 {
	t.Helper()
	var loaded uint32
	for at := 0; at*8 < len(code); at++ {
		i := code[at*8:]
		parameter := binary.NativeEndian.Uint32(i[4:])
		jump := func(taken bool) {
			if taken {
				at += int(i[2])
			} else {
				at += int(i[3])
			}
		}
		switch binary.NativeEndian.Uint16(i) {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			loaded = map[uint32]uint32{0: number, 4: arch, 16: arg0}[parameter]
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			jump(loaded == parameter)
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			jump(loaded&parameter != 0)
		case unix.BPF_RET | unix.BPF_K:
			return parameter
		default:
			t.Fatalf("instruction %d is %x", at, i[:8])
		}
	}
	t.Fatal("the filter has no end")
	return 0
}
