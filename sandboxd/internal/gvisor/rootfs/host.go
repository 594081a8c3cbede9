package rootfs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// installation is what the interpreter says about itself.
type installation struct {
	Executable string   `json:"executable"`
	Real       string   `json:"real"`
	Prefixes   []string `json:"prefixes"`
	Paths      []string `json:"paths"`
}

const askLayout = `
import json, os, sys
print(json.dumps({
    "executable": sys.executable,
    "real": os.path.realpath(sys.executable),
    "prefixes": sorted({sys.prefix, sys.base_prefix}),
    "paths": [p for p in sys.path if os.path.isdir(p)],
}))`

// skipDirs are never needed by a program and make up much of an installation.
var skipDirs = map[string]bool{"tests": true, "idlelib": true, "ensurepip": true, "lib2to3": true, "turtledemo": true}

// dataDirs are what the C library and Python read besides, where the host has them:
// the locale of our environment, and time zones.
var dataDirs = []string{"/usr/lib/locale/C.utf8", "/usr/share/zoneinfo"}

// fileSet maps a path inside the root to where its content is on the host.
// Directories are implied. A symbolic link inside a Python folder is followed:
// its content is stored under its own name.
type fileSet map[string]string

// hostFiles lists what the interpreter needs: itself, its modules, and the
// transitive closure of the shared libraries all of these link to.
func hostFiles(ctx context.Context, python string) (fileSet, error) {
	// -I keeps the caller's directory and user packages out.
	out, err := exec.CommandContext(ctx, python, "-I", "-c", askLayout).Output()
	if err != nil {
		return nil, fmt.Errorf("%w: ask %s for its layout: %w", ErrNoPython, python, err)
	}
	var l installation
	if err := json.Unmarshal(out, &l); err != nil {
		return nil, fmt.Errorf("ask %s for its layout: %w", python, err)
	}
	files := fileSet{python: l.Real, l.Executable: l.Real, l.Real: l.Real}
	for _, prefix := range l.Prefixes {
		if cfg := filepath.Join(prefix, "pyvenv.cfg"); isRegular(cfg) {
			files[cfg] = cfg
		}
	}
	for _, dir := range append(l.Paths, dataDirs...) {
		if err := files.addTree(dir); err != nil {
			return nil, err
		}
	}
	if err := files.addLibraries(); err != nil {
		return nil, err
	}
	return files, nil
}

// addTree adds the regular files below dir, leaving out tests.
func (f fileSet) addTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
				return nil // not readable for us, so not for a program
			}
			return fmt.Errorf("read Python folder: %w", err)
		}
		if d.IsDir() {
			if skipDirs[d.Name()] || path == filepath.Join(dir, "test") {
				return filepath.SkipDir
			}
			return nil
		}
		if real, err := filepath.EvalSymlinks(path); err == nil && isRegular(real) {
			f[path] = real
		}
		return nil
	})
}

// key hashes names, sizes and times: enough to notice an upgraded package.
func (f fileSet) key() string {
	h := sha256.New()
	for _, path := range slices.Sorted(maps.Keys(f)) {
		info, err := os.Stat(f[path])
		if err != nil {
			continue
		}
		fmt.Fprintf(h, "%s %d %d\n", path, info.Size(), info.ModTime().UnixNano())
	}
	return "host-" + hex.EncodeToString(h.Sum(nil))[:16]
}

// copyTo writes the files below dst, following the host's merged-/usr links so
// that both /lib/x and /usr/lib/x name the same file.
func (f fileSet) copyTo(ctx context.Context, dst string) error {
	for _, link := range []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"} {
		target, err := os.Readlink("/" + link)
		if err != nil {
			continue
		}
		target = strings.TrimPrefix(target, "/")
		if err := os.MkdirAll(filepath.Join(dst, target), 0o755); err != nil {
			return err
		}
		if err := os.Symlink(target, filepath.Join(dst, link)); err != nil {
			return err
		}
	}
	for _, path := range slices.Sorted(maps.Keys(f)) {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("copy into root: %w", err)
		}
		if err := copyFile(f[path], filepath.Join(dst, path)); err != nil {
			return fmt.Errorf("copy into root: %w", err)
		}
	}
	return nil
}

// copyFile keeps the modification time (byte-code caches depend on it) and
// drops every permission but reading and running.
func copyFile(src, dst string) error {
	in, err := os.Open(src)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dst), 0o755); err != nil {
		return err
	}
	mode := os.FileMode(0o444)
	if info.Mode()&0o111 != 0 {
		mode = 0o555
	}
	out, err := os.OpenFile(dst, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) {
		return nil // two names of one file, by a merged /usr
	}
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	return os.Chtimes(dst, info.ModTime(), info.ModTime())
}

func isRegular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// directoryKey hashes a directory's names, sizes and times.
func directoryKey(dir string) (string, error) {
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%s %d %d %s\n", path, info.Size(), info.ModTime().UnixNano(), info.Mode())
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("read root directory: %w", err)
	}
	return "dir-" + hex.EncodeToString(h.Sum(nil))[:16], nil
}
