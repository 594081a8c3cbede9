package up

import (
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
	if err := d.awaitLeftovers(time.Minute, nil, say); err != nil || said != 0 {
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
			if err := d.awaitLeftovers(0, nil, say); !errors.Is(err, ErrUnusable) || !strings.Contains(err.Error(), filepath.Dir(path)) || said != 1 {
				t.Errorf("held too long: %v, said %d times; want ErrUnusable naming the folder, once", err, said)
			}
			signals := make(chan os.Signal, 1)
			signals <- os.Interrupt
			if err := d.awaitLeftovers(time.Minute, signals, say); !errors.Is(err, ErrStopped) {
				t.Errorf("interrupted: %v, want ErrStopped", err)
			}
			time.AfterFunc(150*time.Millisecond, func() { lock.Close() })
			if err := d.awaitLeftovers(time.Minute, nil, say); err != nil {
				t.Errorf("after the process ended: %v", err)
			}
		})
	}
}
