// Package lock holds a directory, or whatever else a file stands for, for one process.
// The kernel gives the lock up when the process ends, however it ends; the file stays
// and holds the number of the last process that had it.
package lock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// ErrHeld occurs when another process, or another part of this one, has the lock.
var ErrHeld = errors.New("in use")

// Lock is a lock that is held.
type Lock struct{ file *os.File }

// Take takes the lock of a file, which it makes where it is missing.
func Take(path string) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := try(f); err != nil {
		if errors.Is(err, ErrHeld) {
			holder, _ := os.ReadFile(path)
			err = fmt.Errorf("%w by process %s (%s)", ErrHeld, strings.TrimSpace(string(holder)), path)
		}
		return nil, errors.Join(err, f.Close())
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Lock{f}, nil
}

// Close gives the lock up.
func (l *Lock) Close() error { return l.file.Close() }

// Held says whether somebody has the lock of a file. It is free if there is no file.
func Held(path string) (bool, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	err = try(f)
	if errors.Is(err, ErrHeld) {
		return true, f.Close()
	}
	return false, errors.Join(err, f.Close())
}

func try(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrHeld
	}
	return err
}
