package state

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The folder of running sandboxes is the directory's own, wherever it lies: closed to
// others, another one for another directory, and gone with the daemon.
func TestRun(t *testing.T) {
	places := map[string]bool{}
	for range 2 {
		path := t.TempDir()
		d, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if places[d.Run] {
			t.Errorf("two directories share %s", d.Run)
		}
		places[d.Run] = true
		if d.Run == d.ownRun() {
			t.Logf("no file system in memory here: it is %s", d.Run)
			continue
		}
		info, err := os.Lstat(d.Run)
		if err != nil || info.Mode() != os.ModeDir|0o700 {
			t.Errorf("%s: %v, %v", d.Run, info, err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(d.Run); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", d.Run, err)
		}
	}
}

// Where everybody may write, somebody else's folder or link of that name is not used.
func TestRunIsNotAnothers(t *testing.T) {
	for name, make := range map[string]func(path string) error{
		"a link":                func(path string) error { return os.Symlink(t.TempDir(), path) },
		"a file":                func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"a folder open to all":  func(path string) error { return os.Mkdir(path, 0o777) },
		"a folder of another's": func(path string) error { return os.Mkdir(path, 0o755) },
	} {
		t.Run(name, func(t *testing.T) {
			d, err := Open(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if d.Run == d.ownRun() {
				t.Skip("no file system in memory here")
			}
			taken := d.Run
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			if err := make(taken); err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(taken)
			if name != "a link" && name != "a file" {
				if err := os.Chmod(taken, 0o777); err != nil {
					t.Fatal(err)
				}
			}
			again, err := Open(d.Path)
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			if again.Run == taken {
				t.Errorf("%s is used", taken)
			}
		})
	}
}

// Only the argument that names a folder of this directory marks a process as its own.
func TestOurs(t *testing.T) {
	d, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for arg, want := range map[string]bool{
		"--root=" + filepath.Join(d.Run, d.Prefix()+"a"):              true,
		"--root=" + filepath.Join(d.Path, "run", d.Prefix()+"a"):      true,
		"--root=" + filepath.Join(d.Run, "sbx-00000000-a"):            false,
		"--root=" + filepath.Join("/elsewhere", d.Prefix()+"a"):       false,
		"--log=" + filepath.Join(d.Run, d.Prefix()+"a"):               false,
		strings.Repeat("x", 10) + filepath.Join(d.Run, d.Prefix()):    false,
		"--root=" + filepath.Join(d.Run, d.Prefix()+"a", "runsc.log"): false,
	} {
		if got := d.ours(arg); got != want {
			t.Errorf("%s: %v, want %v", arg, got, want)
		}
	}
}
