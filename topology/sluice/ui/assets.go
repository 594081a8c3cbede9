package ui

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"regexp"
	"strings"
)

//go:embed assets/*.html assets/*.css assets/*.svg assets/js assets/vendor/*.js assets/vendor/*.css assets/vendor/*.LICENSE
var embedded embed.FS

// assets are the files of the pages, each with a name of its own for its content, so that
// browsers may keep what they have seen.
type assets struct {
	files map[string]asset
	index []byte
	// scripts are the hashes of the scripts that stand in index.html.
	scripts []string
}

type asset struct {
	content []byte
	kind    string
	tag     string
}

var inline = regexp.MustCompile(`(?s)<script[^>]*>(.+?)</script>`)

func loadAssets() (*assets, error) {
	a := &assets{files: map[string]asset{}}
	err := fs.WalkDir(embedded, "assets", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := embedded.ReadFile(name)
		if err != nil {
			return err
		}
		kind := map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}[path.Ext(name)]
		if kind == "" {
			kind = mime.TypeByExtension(path.Ext(name))
		}
		if kind == "" {
			kind = "text/plain; charset=utf-8" // a licence
		}
		sum := sha256.Sum256(b)
		a.files["/"+name] = asset{b, kind, `"` + hex.EncodeToString(sum[:8]) + `"`}
		return nil
	})
	if err != nil {
		return nil, err
	}
	index, ok := a.files["/assets/index.html"]
	if !ok {
		return nil, errors.New("assets/index.html is missing")
	}
	delete(a.files, "/assets/index.html")
	a.index = index.content
	for _, m := range inline.FindAllSubmatch(a.index, -1) {
		sum := sha256.Sum256(m[1])
		a.scripts = append(a.scripts, fmt.Sprintf("'sha256-%s'", base64.StdEncoding.EncodeToString(sum[:])))
	}
	return a, nil
}

// page answers with the one page, which looks at its address itself.
func (a *assets) page(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(a.index)
}

func (a *assets) file(w http.ResponseWriter, r *http.Request) {
	f, ok := a.files[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("ETag", f.tag)
	h.Set("Cache-Control", "no-cache") // asks whether it is still so
	if strings.Contains(r.Header.Get("If-None-Match"), f.tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(f.content)
}
