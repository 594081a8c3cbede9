package clickhouse

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

//go:embed tables/*.sql views/*.sql
var files embed.FS

// ViewsVersion rises with every change to a file in views/.
const ViewsVersion = 6

// file is one numbered SQL file.
type file struct {
	version  uint32
	name     string
	text     string
	checksum string
}

// load reads a folder's files in the order of their numbers, which must be 1, 2, 3 …
func load(fsys fs.FS, dir string) ([]file, error) {
	names, err := fs.Glob(fsys, path.Join(dir, "*.sql"))
	if err != nil {
		return nil, err
	}
	var out []file
	for _, p := range names {
		name := path.Base(p)
		digits, _, _ := strings.Cut(name, "_")
		n, err := strconv.ParseUint(digits, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("%s: want a name such as 0001_what.sql", p)
		}
		b, err := fs.ReadFile(fsys, p)
		if err != nil {
			return nil, err
		}
		out = append(out, file{uint32(n), name, string(b), checksum(string(b))})
	}
	slices.SortFunc(out, func(a, b file) int { return int(a.version) - int(b.version) })
	for i, f := range out {
		if f.version != uint32(i+1) {
			return nil, fmt.Errorf("%s/%s: want number %d next", dir, f.name, i+1)
		}
	}
	return out, nil
}

func checksum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Statements splits the text of an SQL file: each statement ends with a line that ends
// in ";". The ";" is left out; comments stay.
func Statements(text string) []string {
	var out []string
	var now strings.Builder
	for line := range strings.Lines(text) {
		trimmed := strings.TrimRight(line, " \t\r\n")
		if !strings.HasSuffix(trimmed, ";") || strings.HasPrefix(strings.TrimSpace(trimmed), "--") {
			now.WriteString(line)
			continue
		}
		now.WriteString(strings.TrimSuffix(trimmed, ";"))
		out = append(out, now.String())
		now.Reset()
	}
	if rest := strings.TrimSpace(now.String()); rest != "" {
		out = append(out, rest)
	}
	return out
}
