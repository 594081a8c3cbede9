package lock_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/sluice-rl/sluice/topology/process/lock"
)

func TestALockIsOneHoldersUntilItIsGivenUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if held, err := lock.Held(path); held || err != nil {
		t.Errorf("without a file: held %v, %v", held, err)
	}
	first, err := lock.Take(path)
	if err != nil {
		t.Fatal(err)
	}
	if held, err := lock.Held(path); !held || err != nil {
		t.Errorf("while it is held: held %v, %v", held, err)
	}
	_, err = lock.Take(path)
	if !errors.Is(err, lock.ErrHeld) || !strings.Contains(err.Error(), "process "+strconv.Itoa(os.Getpid())) || !strings.Contains(err.Error(), path) {
		t.Errorf("taken twice: %v, want ErrHeld with the holder and the path", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if held, err := lock.Held(path); held || err != nil {
		t.Errorf("given up: held %v, %v", held, err)
	}
	again, err := lock.Take(path)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}

func TestAFileThatCannotBeMadeIsAnErrorOfItsOwn(t *testing.T) {
	if _, err := lock.Take(filepath.Join(t.TempDir(), "no", "lock")); !errors.Is(err, os.ErrNotExist) || errors.Is(err, lock.ErrHeld) {
		t.Errorf("got %v, want that the folder is missing", err)
	}
}
