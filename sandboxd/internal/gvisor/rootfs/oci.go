package rootfs

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// maxUnpacked bounds what an image may unpack to, in bytes.
const maxUnpacked = 8 << 30

// pull finds an image: a registry reference, "layout:/dir" for an OCI layout or
// "archive:/file.tar" for what `docker save` writes. No Docker is involved.
func pull(ctx context.Context, ref string) (v1.Image, string, error) {
	img, err := open(ctx, ref)
	if err != nil {
		return nil, "", fmt.Errorf("OCI image %q: %w", ref, err)
	}
	digest, err := img.Digest()
	if err != nil {
		return nil, "", fmt.Errorf("OCI image %q: %w", ref, err)
	}
	return img, "oci-" + digest.Hex[:16], nil
}

func open(ctx context.Context, ref string) (v1.Image, error) {
	if dir, ok := strings.CutPrefix(ref, "layout:"); ok {
		index, err := layout.ImageIndexFromPath(dir)
		if err != nil {
			return nil, err
		}
		manifest, err := index.IndexManifest()
		if err != nil {
			return nil, err
		}
		if len(manifest.Manifests) != 1 {
			return nil, fmt.Errorf("the layout holds %d images, want 1", len(manifest.Manifests))
		}
		return index.Image(manifest.Manifests[0].Digest)
	}
	if file, ok := strings.CutPrefix(ref, "archive:"); ok {
		return tarball.ImageFromPath(file, nil)
	}
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return nil, err
	}
	return remote.Image(parsed, remote.WithContext(ctx))
}

// unpack writes the flattened image below dst. os.Root keeps every path, links
// included, inside.
func unpack(ctx context.Context, img v1.Image, dst string) error {
	root, err := os.OpenRoot(dst)
	if err != nil {
		return err
	}
	defer root.Close()
	stream := mutate.Extract(img)
	defer stream.Close()
	var total int64
	for r := tar.NewReader(stream); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("unpack OCI image: %w", err)
		}
		total += h.Size
		if total > maxUnpacked {
			return fmt.Errorf("unpack OCI image: more than %d bytes", int64(maxUnpacked))
		}
		if err := unpackEntry(root, h, r); err != nil {
			return fmt.Errorf("unpack OCI image: %s: %w", h.Name, err)
		}
	}
}

func unpackEntry(root *os.Root, h *tar.Header, content io.Reader) error {
	file := strings.TrimPrefix(path.Clean("/"+h.Name), "/")
	if file == "" {
		return nil
	}
	if dir := path.Dir(file); dir != "." {
		if err := root.MkdirAll(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	switch h.Typeflag {
	case tar.TypeDir:
		err := root.MkdirAll(file, 0o755)
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	case tar.TypeReg:
		mode := os.FileMode(0o644)
		if h.Mode&0o111 != 0 {
			mode = 0o755
		}
		if err := root.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		out, err := root.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err != nil {
			return err
		}
		if _, err := io.Copy(out, content); err != nil {
			out.Close()
			return err
		}
		if err := out.Close(); err != nil {
			return err
		}
		return root.Chtimes(file, h.ModTime, h.ModTime)
	case tar.TypeSymlink:
		_ = root.Remove(file)
		return root.Symlink(h.Linkname, file)
	case tar.TypeLink:
		_ = root.Remove(file)
		return root.Link(strings.TrimPrefix(filepath.Clean("/"+h.Linkname), "/"), file)
	}
	return nil // devices, sockets and the like have no place in a root
}
