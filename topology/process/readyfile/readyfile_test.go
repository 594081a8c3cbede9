package readyfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/sluice-rl/sluice/topology/process/readyfile"
)

func TestWhatIsWrittenIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "broker.ready")
	remove, err := readyfile.Write(path, map[string]string{"kafka": "127.0.0.1:1234"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := readyfile.Read(path, os.Getpid())
	if err != nil || got["kafka"] != "127.0.0.1:1234" {
		t.Fatalf("read %v, %v; want the address that was written", got, err)
	}
	if err := remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := readyfile.Read(path, os.Getpid()); !errors.Is(err, readyfile.ErrNotReady) {
		t.Errorf("after removal: %v, want ErrNotReady", err)
	}
	if err := remove(); err != nil {
		t.Errorf("removing twice: %v, want no error", err)
	}
}

func TestTheFileOfADeadPredecessorIsNotBelieved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "broker.ready")
	if _, err := readyfile.Write(path, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := readyfile.Read(path, os.Getpid()+1); !errors.Is(err, readyfile.ErrNotReady) {
		t.Errorf("got %v, want ErrNotReady for another pid", err)
	}
}

func TestABrokenFileIsAnErrorThatNamesIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "broker.ready")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readyfile.Read(path, 1); err == nil || errors.Is(err, readyfile.ErrNotReady) {
		t.Errorf("got %v, want an error other than ErrNotReady", err)
	}
}
