// Package libchdb runs the ClickHouse engine that libchdb.so holds, in this process.
//
// It is the only package that loads C code: a binary that imports it needs glibc on
// x86-64, and a crash of the engine is a crash of the process. Give it a process of
// its own.
package libchdb

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/unix"
)

// ErrLibrary: the file is not there, or is not a libchdb.so that this build can use.
var ErrLibrary = errors.New("libchdb.so unusable")

// Library is a loaded libchdb.so. It can serve once.
type Library struct {
	version     string
	setSignals  func(int32)
	cmdline     func(int32, **byte) uintptr
	resultError func(uintptr) string
}

// Open loads the library. Its errors wrap ErrLibrary.
func Open(path string) (*Library, error) {
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLibrary, err)
	}
	l := &Library{}
	var version func() string
	for _, f := range []struct {
		name string
		to   any
	}{
		{"chdb_version", &version},
		{"chdb_set_signal_handlers_enabled", &l.setSignals},
		{"chdb_query_cmdline", &l.cmdline},
		{"chdb_result_error", &l.resultError},
	} {
		address, err := purego.Dlsym(handle, f.name)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrLibrary, path, err)
		}
		purego.RegisterFunc(f.to, address)
	}
	l.version = version()
	return l, nil
}

// Version is the engine's, such as "26.7.2.1".
func (l *Library) Version() string { return l.version }

// Run runs the engine with the arguments of clickhouse-local, the program's name
// first, and returns when its queries have ended. What went wrong the engine mostly
// says on stderr; the error holds what it returns.
func (l *Library) Run(args []string) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// The engine's threads inherit this mask: signals for the process are to reach
	// Go's threads, not theirs.
	var masked, before unix.Sigset_t
	for _, s := range []unix.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGPIPE, unix.SIGCHLD} {
		masked.Val[(s-1)/64] |= 1 << ((s - 1) % 64)
	}
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &masked, &before); err != nil {
		return fmt.Errorf("mask signals: %w", err)
	}
	defer unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil)

	l.setSignals(0)
	argv := make([]*byte, 0, len(args)+1)
	for _, a := range args {
		b := append([]byte(a), 0)
		argv = append(argv, &b[0])
	}
	// The C side may keep and read the strings for as long as it runs.
	var pinner runtime.Pinner
	defer pinner.Unpin()
	for _, p := range argv {
		pinner.Pin(p)
	}
	argv = append(argv, nil)
	result := l.cmdline(int32(len(args)), &argv[0])
	runtime.KeepAlive(argv)
	if result == 0 {
		return errors.New("the engine returned no result")
	}
	if text := l.resultError(result); text != "" {
		return errors.New(text)
	}
	return nil
}
