package up

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestStartWaitsForProcessesOfAKilledOne(t *testing.T) {
	d, err := openDirectory(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	said := 0
	say := func(string, ...any) { said++ }
	if err := d.awaitLeftovers(t.Context(), time.Minute, say); err != nil || said != 0 {
		t.Fatalf("without data: %v, said %d times; want neither", err, said)
	}
	for _, name := range []string{"broker/lock", "simpolicy/run.lock"} {
		t.Run(name, func(t *testing.T) {
			said = 0
			path := d.file("data", filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			lock, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			defer lock.Close()
			if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
				t.Fatal(err)
			}
			if err := d.awaitLeftovers(t.Context(), 0, say); !errors.Is(err, ErrUnusable) || !strings.Contains(err.Error(), filepath.Dir(path)) || said != 1 {
				t.Errorf("held too long: %v, said %d times; want ErrUnusable naming the folder, once", err, said)
			}
			stopped, stop := context.WithCancel(t.Context())
			stop()
			if err := d.awaitLeftovers(stopped, time.Minute, say); !errors.Is(err, ErrStopped) {
				t.Errorf("interrupted: %v, want ErrStopped", err)
			}
			time.AfterFunc(150*time.Millisecond, func() { lock.Close() })
			if err := d.awaitLeftovers(t.Context(), time.Minute, say); err != nil {
				t.Errorf("after the process ended: %v", err)
			}
		})
	}
}
