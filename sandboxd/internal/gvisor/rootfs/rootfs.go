package rootfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrNoPython occurs when the chosen root holds no usable interpreter.
var ErrNoPython = errors.New("no Python interpreter in the root file system")

// Config says where the root comes from.
type Config struct {
	// Source is "host", "dir:/path" or "oci:reference".
	Source string
	// Python is the interpreter's absolute path, on the host and in the root.
	Python string
	// CacheDir receives the built roots.
	CacheDir string
	// Format is "auto", "erofs" or "dir".
	Format string
}

// Root is a root file system ready for use.
type Root struct {
	// Path is the EROFS image file, or the directory.
	Path string
	// EROFS tells which of the two.
	EROFS bool
	// Key names the content: the same key means the same files.
	Key string
	// Python is the interpreter's path inside.
	Python string
}

// Build returns the root that cfg describes, building it if the cache lacks it.
func Build(ctx context.Context, cfg Config, log *slog.Logger) (Root, error) {
	if !filepath.IsAbs(cfg.Python) {
		return Root{}, fmt.Errorf("python path %q is not absolute: name the interpreter, for instance /usr/bin/python3", cfg.Python)
	}
	if err := os.MkdirAll(cfg.CacheDir, 0o755); err != nil {
		return Root{}, fmt.Errorf("make root cache: %w", err)
	}
	mkfs, err := chooseFormat(cfg.Format)
	if err != nil {
		return Root{}, err
	}
	kind, rest, _ := strings.Cut(cfg.Source, ":")
	switch kind {
	case "host":
		files, err := hostFiles(ctx, cfg.Python)
		if err != nil {
			return Root{}, err
		}
		return materialise(ctx, cfg, mkfs, files.key(), files.copyTo, log)
	case "dir":
		return fromDirectory(ctx, cfg, mkfs, rest, log)
	case "oci":
		img, digest, err := pull(ctx, rest)
		if err != nil {
			return Root{}, err
		}
		return materialise(ctx, cfg, mkfs, digest, func(ctx context.Context, dst string) error { return unpack(ctx, img, dst) }, log)
	}
	return Root{}, fmt.Errorf("root source %q: want host, dir:/path or oci:reference", cfg.Source)
}

// chooseFormat returns the mkfs.erofs to use, or "" for a plain directory.
func chooseFormat(format string) (string, error) {
	if format == "dir" {
		return "", nil
	}
	mkfs, err := exec.LookPath("mkfs.erofs")
	if err == nil {
		return mkfs, nil
	}
	// Daemons often run without the sbin directories on PATH.
	for _, p := range []string{"/usr/sbin/mkfs.erofs", "/sbin/mkfs.erofs", "/usr/bin/mkfs.erofs"} {
		if _, err := os.Stat(p); err == nil {
			return p, nil
		}
	}
	if format == "erofs" {
		return "", fmt.Errorf("mkfs.erofs not found: install erofs-utils, or use --rootfs-format=dir")
	}
	return "", nil
}

// fromDirectory uses a directory as it stands, or packs it.
func fromDirectory(ctx context.Context, cfg Config, mkfs, dir string, log *slog.Logger) (Root, error) {
	if !filepath.IsAbs(dir) {
		return Root{}, fmt.Errorf("root directory %q is not absolute", dir)
	}
	if _, err := os.Lstat(filepath.Join(dir, cfg.Python)); err != nil {
		return Root{}, fmt.Errorf("%w: %s has no %s", ErrNoPython, dir, cfg.Python)
	}
	key, err := directoryKey(dir)
	if err != nil {
		return Root{}, err
	}
	if mkfs == "" {
		return Root{Path: dir, Key: key, Python: cfg.Python}, nil
	}
	image := filepath.Join(cfg.CacheDir, key+".erofs")
	if _, err := os.Stat(image); err == nil {
		return Root{Path: image, EROFS: true, Key: key, Python: cfg.Python}, nil
	}
	if err := pack(ctx, mkfs, dir, image); err != nil {
		return Root{}, err
	}
	log.Info("root file system packed", "source", dir, "image", image)
	return Root{Path: image, EROFS: true, Key: key, Python: cfg.Python}, nil
}

// materialise fills a fresh directory by fill and keeps it, packed or plain,
// under its key.
func materialise(ctx context.Context, cfg Config, mkfs, key string, fill func(ctx context.Context, dst string) error, log *slog.Logger) (Root, error) {
	root := Root{Path: filepath.Join(cfg.CacheDir, key), Key: key, Python: cfg.Python}
	if mkfs != "" {
		root.Path += ".erofs"
		root.EROFS = true
	}
	if _, err := os.Stat(root.Path); err == nil {
		return root, nil
	}
	stage, err := os.MkdirTemp(cfg.CacheDir, ".stage-")
	if err != nil {
		return Root{}, fmt.Errorf("stage root: %w", err)
	}
	defer os.RemoveAll(stage)
	if err := os.Chmod(stage, 0o755); err != nil {
		return Root{}, err
	}
	if err := fill(ctx, stage); err != nil {
		return Root{}, err
	}
	if err := furnish(stage); err != nil {
		return Root{}, err
	}
	if _, err := os.Lstat(filepath.Join(stage, cfg.Python)); err != nil {
		return Root{}, fmt.Errorf("%w: %s has no %s; set --python to its path there", ErrNoPython, cfg.Source, cfg.Python)
	}
	if root.EROFS {
		err = pack(ctx, mkfs, stage, root.Path)
	} else {
		err = os.Rename(stage, root.Path)
	}
	if err != nil {
		return Root{}, fmt.Errorf("keep root: %w", err)
	}
	log.Info("root file system built", "source", cfg.Source, "path", root.Path)
	return root, nil
}

// furnish adds the mount points and the few files of /etc that libraries ask
// for, replacing whatever the source had there: no host name or user leaks in.
func furnish(root string) error {
	r, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer r.Close()
	for _, dir := range []string{"dev", "proc", "sys", "tmp", "etc", "dev/shm"} {
		if err := r.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("furnish root: %w", err)
		}
	}
	for name, text := range map[string]string{
		"etc/passwd":        "nobody:x:65534:65534:nobody:/tmp:/nonexistent\n",
		"etc/group":         "nogroup:x:65534:\n",
		"etc/hosts":         "127.0.0.1 localhost\n::1 localhost\n",
		"etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
	} {
		if err := r.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("furnish root: %w", err)
		}
		if err := r.WriteFile(name, []byte(text), 0o644); err != nil {
			return fmt.Errorf("furnish root: %w", err)
		}
	}
	return nil
}

// pack writes dir as an EROFS image; the image appears whole or not at all.
func pack(ctx context.Context, mkfs, dir, image string) error {
	tmp := fmt.Sprintf("%s.%d.tmp", image, os.Getpid())
	defer os.Remove(tmp)
	// noinline_data: gVisor maps file pages straight from the image and needs
	// them aligned.
	cmd := exec.CommandContext(ctx, mkfs, "-E", "noinline_data", "--all-root", tmp, dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("mkfs.erofs: %w: %s", err, lastLine(out))
	}
	if err := os.Chmod(tmp, 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, image)
}

func lastLine(out []byte) string {
	text := strings.TrimSpace(string(out))
	if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		text = text[i+1:]
	}
	return text
}
