package rootfs

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"log"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

var quiet = slog.New(slog.DiscardHandler)

// layerOf makes an image layer of tar headers; a regular file's content is its name.
func layerOf(t *testing.T, headers ...tar.Header) v1.Layer {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, h := range headers {
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(h.Name))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := io.WriteString(w, h.Name); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buf.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	return layer
}

func imageOf(t *testing.T, layers ...v1.Layer) v1.Image {
	t.Helper()
	img, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func TestOCIImageBecomesADirectory(t *testing.T) {
	img := imageOf(t,
		layerOf(t,
			tar.Header{Name: "usr/bin/", Typeflag: tar.TypeDir, Mode: 0o755},
			tar.Header{Name: "usr/bin/python3.11", Typeflag: tar.TypeReg, Mode: 0o4755},
			tar.Header{Name: "usr/bin/python3", Typeflag: tar.TypeSymlink, Linkname: "python3.11"},
			tar.Header{Name: "etc/passwd", Typeflag: tar.TypeReg, Mode: 0o644},
			tar.Header{Name: "old", Typeflag: tar.TypeReg, Mode: 0o644},
			tar.Header{Name: "dev/sda", Typeflag: tar.TypeBlock, Mode: 0o666, Devmajor: 8}),
		layerOf(t, tar.Header{Name: ".wh.old", Typeflag: tar.TypeReg, Mode: 0o644}))
	dir := t.TempDir()
	if _, err := layout.Write(dir, mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: img})); err != nil {
		t.Fatal(err)
	}
	cfg := Config{Source: "oci:layout:" + dir, Python: "/usr/bin/python3", CacheDir: t.TempDir(), Format: "dir"}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Build(gone, cfg, quiet); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that ended: %v", err)
	}
	if left, err := os.ReadDir(cfg.CacheDir); err != nil || len(left) > 0 {
		t.Errorf("it left %v, %v", left, err)
	}
	root, err := Build(t.Context(), cfg, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if root.EROFS {
		t.Error("asked for a directory, got EROFS")
	}
	info, err := os.Stat(filepath.Join(root.Path, "usr/bin/python3"))
	if err != nil || info.Mode() != 0o755 {
		t.Errorf("the interpreter: %v %v; want mode 0755, the setuid bit gone", info, err)
	}
	if data, _ := os.ReadFile(filepath.Join(root.Path, "etc/passwd")); string(data) != "nobody:x:65534:65534:nobody:/tmp:/nonexistent\n" {
		t.Errorf("/etc/passwd is %q, want our own", data)
	}
	for _, name := range []string{"old", "dev/sda"} {
		if _, err := os.Lstat(filepath.Join(root.Path, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is in the root: %v", name, err)
		}
	}
	again, err := Build(t.Context(), cfg, quiet)
	if err != nil || again != root {
		t.Errorf("built anew: %+v, %v", again, err)
	}
}

// An image is pulled from a registry without Docker.
func TestOCIImageFromARegistry(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	at := strings.TrimPrefix(server.URL, "http://") + "/python:3"
	ref, err := name.ParseReference(at)
	if err != nil {
		t.Fatal(err)
	}
	img := imageOf(t, layerOf(t, tar.Header{Name: "usr/bin/python3", Typeflag: tar.TypeReg, Mode: 0o755}))
	if err := remote.Write(ref, img); err != nil {
		t.Fatal(err)
	}
	root, err := Build(t.Context(), Config{Source: "oci:" + at, Python: "/usr/bin/python3", CacheDir: t.TempDir(), Format: "dir"}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root.Path, "usr/bin/python3")); err != nil {
		t.Error(err)
	}
}

// No name or link of an image leads out of the root.
func TestOCIImageCannotEscape(t *testing.T) {
	for name, headers := range map[string][]tar.Header{
		"dots":              {{Name: "../../escaped", Typeflag: tar.TypeReg, Mode: 0o644}},
		"absolute":          {{Name: "/escaped", Typeflag: tar.TypeReg, Mode: 0o644}},
		"through a symlink": {{Name: "out", Typeflag: tar.TypeSymlink, Linkname: "OUTSIDE"}, {Name: "out/escaped", Typeflag: tar.TypeReg, Mode: 0o644}},
		"hard link":         {{Name: "link", Typeflag: tar.TypeLink, Linkname: "../../../../etc/passwd"}},
	} {
		t.Run(name, func(t *testing.T) {
			outside := t.TempDir()
			dst := filepath.Join(outside, "in", "root")
			if err := os.MkdirAll(dst, 0o755); err != nil {
				t.Fatal(err)
			}
			for i := range headers {
				if headers[i].Linkname == "OUTSIDE" {
					headers[i].Linkname = outside
				}
			}
			err := unpack(t.Context(), imageOf(t, layerOf(t, headers...)), dst)
			t.Log(err) // an error is as good as staying inside
			for _, dir := range []string{outside, filepath.Join(outside, "in")} {
				if _, err := os.Lstat(filepath.Join(dir, "escaped")); err == nil {
					t.Errorf("the image wrote into %s", dir)
				}
			}
			if info, err := os.Stat(filepath.Join(dst, "link")); err == nil && info.Size() > 0 {
				t.Error("the image linked a file of the host")
			}
		})
	}
}

func TestHostRoot(t *testing.T) {
	const python = "/usr/bin/python3"
	if _, err := os.Stat(python); err != nil && os.Getenv("CI") != "" {
		t.Fatalf("CI is set, so this test must run: %v", err)
	} else if err != nil {
		t.Skip("needs " + python)
	}
	files, err := hostFiles(t.Context(), python)
	if err != nil {
		t.Fatal(err)
	}
	var loader bool
	for path := range files {
		if bytes.Contains([]byte(path), []byte("/ld-linux")) {
			loader = true
		}
		for _, secret := range []string{"/root/", "/home/", "/etc/shadow", "/etc/passwd"} {
			if bytes.HasPrefix([]byte(path), []byte(secret)) {
				t.Errorf("%s has no place in the root", path)
			}
		}
	}
	if !loader || files[python] == "" {
		t.Errorf("%d files, but loader %v, interpreter %q", len(files), loader, files[python])
	}
	if first, again := files.key(), files.key(); first != again {
		t.Error("the key changes by itself")
	}
}

func TestBadRootsSayWhy(t *testing.T) {
	for name, cfg := range map[string]Config{
		"unknown source":     {Source: "zip:/x", Python: "/usr/bin/python3"},
		"relative directory": {Source: "dir:x", Python: "/usr/bin/python3"},
		"relative python":    {Source: "host", Python: "python3"},
		"no python inside":   {Source: "dir:" + t.TempDir(), Python: "/usr/bin/python3"},
		"no such python":     {Source: "host", Python: "/nonexistent/python3"},
		"no such layout":     {Source: "oci:layout:/nonexistent", Python: "/usr/bin/python3"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.CacheDir, cfg.Format = t.TempDir(), "dir"
			if root, err := Build(t.Context(), cfg, quiet); err == nil {
				t.Errorf("got %+v, want an error", root)
			} else {
				t.Log(err)
			}
			if entries, _ := os.ReadDir(cfg.CacheDir); len(entries) > 0 {
				t.Errorf("left %v in the cache", entries)
			}
		})
	}
}
