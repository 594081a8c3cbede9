package clickhouse

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sluice-rl/sluice/topology/process/lock"
)

// FormatVersion is the version of the data directory's layout that this build writes.
// It rises when an older build would misread the directory.
const FormatVersion = 1

var (
	// ErrNewerData: the directory was written by a layout or an engine that is newer
	// than this build's.
	ErrNewerData = errors.New("data directory of a newer version")
	// ErrForeignData: the directory holds something else.
	ErrForeignData = errors.New("not a data directory of sluice-clickhouse")
	// ErrInUse: another sluice-clickhouse runs on the directory.
	ErrInUse = errors.New("data directory in use")
)

// What a data directory holds.
const (
	markerName   = "SLUICE_CLICKHOUSE"
	lockName     = "lock"
	engineName   = "engine" // the engine's own files
	emptyName    = "empty"  // its working directory
	usersName    = "users.xml"
	configName   = "config.xml"
	writerSecret = "writer.password"
	readerSecret = "reader.password"
	pagesSecret  = "pages.password"
)

// The users that clients sign in as.
const (
	WriterUser = "writer"
	ReaderUser = "reader"
	// PagesUser may read one database, within limits: what people and pages ask for
	// cannot take the engine from those that write.
	PagesUser = "pages"
	stopUser  = "stop"
)

type marker struct {
	Format int `json:"format"`
	// Engine is the newest engine that wrote to the directory.
	Engine string `json:"engine,omitempty"`
}

// directory is a claimed data directory.
type directory struct {
	path   string
	lock   *lock.Lock
	marker marker
}

// claim makes path a data directory, or checks that it is one that this build can read,
// and keeps every other process out of it until Close.
func claim(path string) (*directory, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	d := &directory{path: path}
	if err := d.readMarker(); err != nil {
		return nil, err
	}
	switch d.lock, err = lock.Take(d.file(lockName)); {
	case errors.Is(err, lock.ErrHeld):
		return nil, fmt.Errorf("%w: %s: %w: stop that process, or name another directory with --data-dir", ErrInUse, path, err)
	case err != nil:
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if err := d.writeMarker(); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// Close lets others have the directory.
func (d *directory) Close() error { return d.lock.Close() }

func (d *directory) file(name string) string { return filepath.Join(d.path, name) }

func (d *directory) readMarker() error {
	path := d.file(markerName)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		d.marker = marker{Format: FormatVersion}
		return d.refuseForeign()
	}
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	if err := json.Unmarshal(b, &d.marker); err != nil || d.marker.Format < 1 {
		return fmt.Errorf("%w: %s is damaged: remove the directory, or name another with --data-dir", ErrForeignData, path)
	}
	if d.marker.Format > FormatVersion {
		return fmt.Errorf("%w: %s has format %d, this build reads up to %d: start the newer sluice-clickhouse on it, or name another directory with --data-dir", ErrNewerData, d.path, d.marker.Format, FormatVersion)
	}
	return nil
}

// refuseForeign refuses a directory without our marker that is not empty; a lock alone
// is what a first start leaves that was killed early.
func (d *directory) refuseForeign() error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	for _, e := range entries {
		if e.Name() != lockName {
			return fmt.Errorf("%w: %s has no file %s but holds %q: name an empty directory with --data-dir", ErrForeignData, d.path, markerName, e.Name())
		}
	}
	return nil
}

func (d *directory) writeMarker() error {
	b, err := json.Marshal(d.marker)
	if err != nil {
		return err
	}
	return d.replace(markerName, append(b, '\n'), 0o644, os.Getuid(), os.Getgid())
}

// replace writes a file of the directory at once and whole.
func (d *directory) replace(name string, content []byte, mode os.FileMode, uid, gid int) error {
	tmp := d.file(name) + ".tmp"
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("data directory: %w", err)
	}
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chown(uid, gid), f.Close()); err == nil {
		err = os.Rename(tmp, d.file(name))
	}
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	return nil
}

// secret returns the password that a file of the directory holds; it makes one at the
// first start.
func (d *directory) secret(name string) (string, error) {
	b, err := os.ReadFile(d.file(name))
	if s := strings.TrimSpace(string(b)); err == nil && s != "" {
		return s, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("password: %w", err)
	}
	s := rand.Text()
	return s, d.replace(name, []byte(s+"\n"), 0o600, os.Getuid(), os.Getgid())
}

// prepare makes what the engine needs to find, owned by the user it will run as.
func (d *directory) prepare(uid, gid int, stopPassword, pagesDatabase string) error {
	writer, err := d.secret(writerSecret)
	if err != nil {
		return err
	}
	reader, err := d.secret(readerSecret)
	if err != nil {
		return err
	}
	pages, err := d.secret(pagesSecret)
	if err != nil {
		return err
	}
	for _, name := range []string{engineName, emptyName} {
		if err := os.MkdirAll(d.file(name), 0o700); err != nil {
			return fmt.Errorf("data directory: %w", err)
		}
		if err := chownAll(d.file(name), uid, gid); err != nil {
			return fmt.Errorf("data directory: %w", err)
		}
	}
	users, err := usersXML(passwords{writer, reader, pages, stopPassword}, pagesDatabase)
	if err != nil {
		return err
	}
	if err := d.replace(usersName, users, 0o600, uid, gid); err != nil {
		return err
	}
	return d.replace(configName, []byte(configXML), 0o600, uid, gid)
}

// chownAll gives a tree to a user, where it does not have it already: a directory may
// have been written by another user before.
func chownAll(root string, uid, gid int) error {
	var st unix.Stat_t
	if err := unix.Stat(root, &st); err != nil {
		return err
	}
	if int(st.Uid) == uid && int(st.Gid) == gid {
		return nil
	}
	var paths []string
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	})
	if err != nil {
		return err
	}
	// The root last: it is what says that the tree was done.
	slices.Reverse(paths)
	for _, path := range paths {
		if err := os.Lchown(path, uid, gid); err != nil {
			return err
		}
	}
	return nil
}

// configXML is relative to the directory that the engine finds itself in.
const configXML = `<clickhouse>
  <users_config>` + usersName + `</users_config>
</clickhouse>
`

// newerThan compares versions such as 26.7.2.1 number by number.
func newerThan(a, b string) bool {
	x, y := numbers(a), numbers(b)
	return slices.Compare(x, y) > 0
}

func numbers(version string) []int {
	var out []int
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			break
		}
		out = append(out, n)
	}
	return out
}
