package bundle

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
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
