package dataset

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// A compressed file may grow to maxRatio times its size, and to freeSize whatever its
// size. Problem sets shrink to a tenth or so.
const (
	maxRatio = 200
	freeSize = 64 << 20
	// maxWindow is what `zstd --ultra -22` needs, in bytes.
	maxWindow = 128 << 20
)

// ErrTooCompressed: a compressed file grows beyond what a problem set can.
var ErrTooCompressed = errors.New("the content is over 200 times as large as the compressed file, which no problem set is")

const (
	gzipMagic = "\x1f\x8b"
	zstdMagic = "\x28\xb5\x2f\xfd"
)

// decompressed gives the content of a file, the name it has without .gz or .zst, and
// what it was compressed with, "" for nothing.
func decompressed(file *os.File, head []byte) (r io.ReadCloser, name, with string, err error) {
	info, err := file.Stat()
	if err != nil {
		return nil, "", "", err
	}
	name = file.Name()
	limit := max(info.Size()*maxRatio, freeSize)
	switch {
	case bytes.HasPrefix(head, []byte(gzipMagic)):
		gz, err := gzip.NewReader(file)
		if err != nil {
			return nil, "", "", err
		}
		return &bounded{gz, limit, gz.Close}, withoutExt(name, ".gz", ".gzip"), "gzip", nil
	case bytes.HasPrefix(head, []byte(zstdMagic)):
		dec, err := zstd.NewReader(file, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, "", "", err
		}
		return &bounded{dec, limit, func() error { dec.Close(); return nil }}, withoutExt(name, ".zst", ".zstd"), "zstd", nil
	}
	return io.NopCloser(file), name, "", nil
}

func withoutExt(name string, exts ...string) string {
	for _, ext := range exts {
		if strings.EqualFold(filepath.Ext(name), ext) {
			return name[:len(name)-len(ext)]
		}
	}
	return name
}

// bounded gives at most left bytes more, then ErrTooCompressed.
type bounded struct {
	r     io.Reader
	left  int64
	close func() error
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, ErrTooCompressed
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("damaged or cut short, fetch it again: %w", err)
	}
	return n, err
}

func (b *bounded) Close() error { return b.close() }
