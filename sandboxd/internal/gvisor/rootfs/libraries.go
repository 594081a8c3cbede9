package rootfs

import (
	"bufio"
	"debug/elf"
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// openedByName are libraries that programs load at run time without linking to
// them: threads unwind through libgcc_s, ctypes users ask for libc and libm.
var openedByName = []string{"libc.so.6", "libm.so.6", "libgcc_s.so.1", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libutil.so.1"}

// addLibraries adds every shared library that the ELF files of the set need,
// and theirs, under the name by which the loader looks for them. A library that
// cannot be found is left out: the module that wants it then fails to import,
// as it would on the host.
func (f fileSet) addLibraries() error {
	search, configured := loaderDirs()
	var queue []string
	for path := range f {
		queue = append(queue, path)
	}
	for len(queue) > 0 {
		path := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		needs, own, interp := linkage(f[path])
		if interp != "" && f[interp] == "" {
			if real, err := filepath.EvalSymlinks(interp); err == nil {
				f[interp] = real
				// The C library's own folder holds what programs open by name.
				for _, name := range openedByName {
					queue = f.addLibrary(name, search, configured, queue)
				}
			}
		}
		for _, name := range needs {
			queue = f.addLibrary(name, append(expandOrigin(own, path), search...), configured, queue)
		}
	}
	return nil
}

// addLibrary finds name in dirs, adds it and queues it for its own needs.
// A library from a folder that only the host's loader configuration names goes
// to /usr/lib, which is searched without any configuration.
func (f fileSet) addLibrary(name string, dirs []string, configured map[string]bool, queue []string) []string {
	if strings.ContainsRune(name, '/') {
		return queue
	}
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		real, err := filepath.EvalSymlinks(path)
		if err != nil || !isRegular(real) {
			continue
		}
		if configured[dir] {
			path = filepath.Join("/usr/lib", name)
		}
		if f[path] == "" {
			f[path] = real
			queue = append(queue, path)
		}
		return queue
	}
	return queue
}

// linkage reads what an ELF file needs, where it says to look first, and its
// program interpreter. Anything else than ELF needs nothing.
func linkage(path string) (needs, runpath []string, interp string) {
	if !isELF(path) {
		return nil, nil, ""
	}
	file, err := elf.Open(path)
	if err != nil {
		return nil, nil, ""
	}
	defer file.Close()
	needs, _ = file.ImportedLibraries()
	for _, tag := range []elf.DynTag{elf.DT_RUNPATH, elf.DT_RPATH} {
		values, _ := file.DynString(tag)
		for _, v := range values {
			runpath = append(runpath, strings.Split(v, ":")...)
		}
	}
	for _, p := range file.Progs {
		if p.Type != elf.PT_INTERP || p.Filesz > 4096 {
			continue
		}
		buf := make([]byte, p.Filesz)
		if _, err := p.ReadAt(buf, 0); err == nil {
			interp = strings.TrimRight(string(buf), "\x00")
		}
	}
	return needs, runpath, interp
}

func isELF(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var magic [4]byte
	_, err = f.Read(magic[:])
	return err == nil && string(magic[:]) == elf.ELFMAG
}

func expandOrigin(dirs []string, path string) []string {
	var out []string
	for _, d := range dirs {
		d = strings.NewReplacer("${ORIGIN}", "$ORIGIN").Replace(d)
		out = append(out, strings.ReplaceAll(d, "$ORIGIN", filepath.Dir(path)))
	}
	return out
}

// loaderDirs is the dynamic loader's search path: its defaults and the folders
// that /etc/ld.so.conf names. The defaults come first, because inside the root
// there is no loader cache and nothing else is searched.
func loaderDirs() (search []string, configured map[string]bool) {
	triplets, _ := filepath.Glob("/usr/lib/*-linux-gnu*")
	var dirs []string
	for _, t := range triplets {
		dirs = append(dirs, "/lib/"+filepath.Base(t), t)
	}
	dirs = append(dirs, "/lib64", "/usr/lib64", "/lib", "/usr/lib")
	defaults := map[string]bool{}
	for _, d := range dirs {
		defaults[d] = true
	}
	configured = map[string]bool{}
	for _, d := range confDirs("/etc/ld.so.conf", 0) {
		if !defaults[d] {
			configured[d] = true
			dirs = append(dirs, d)
		}
	}
	return dirs, configured
}

func confDirs(path string, depth int) []string {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) || err != nil || depth > 4 {
		return nil
	}
	defer f.Close()
	var dirs []string
	for s := bufio.NewScanner(f); s.Scan(); {
		line := strings.TrimSpace(strings.SplitN(s.Text(), "#", 2)[0])
		if pattern, ok := strings.CutPrefix(line, "include "); ok {
			matches, _ := filepath.Glob(strings.TrimSpace(pattern))
			for _, m := range matches {
				dirs = append(dirs, confDirs(m, depth+1)...)
			}
			continue
		}
		if filepath.IsAbs(line) {
			dirs = append(dirs, line)
		}
	}
	return dirs
}
