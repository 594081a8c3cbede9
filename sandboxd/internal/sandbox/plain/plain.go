// Package plain runs programs as plain processes of the host. It isolates
// nothing; it exists for machines where gVisor cannot run and whoever starts the
// daemon has said that he knows.
//
// Reads: the host's interpreter. Writes: one folder per program. Promises: the
// same worker, outcomes and output handling as a real sandbox; wall time and
// output limits hold, memory and CPU where there are control groups.
package plain

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/internal/gvisor/bundle"
	"github.com/sluice-rl/sluice/sandboxd/internal/host/cgroup"
	"github.com/sluice-rl/sluice/sandboxd/internal/host/spawn"
	"github.com/sluice-rl/sluice/sandboxd/internal/sandbox"
	"github.com/sluice-rl/sluice/sandboxd/internal/sandbox/image"
	"github.com/sluice-rl/sluice/sandboxd/internal/sandbox/worker"
)

// ImageName is the image that results name.
const ImageName = "process"

// Config is what every process has in common.
type Config struct {
	Python       string
	Dir          string
	Prefix       string
	Groups       *cgroup.Manager
	Group        cgroup.Limits
	KeepOutput   int
	OutputLimit  int64
	StartTimeout time.Duration
}

// ErrNoImages occurs when a warm process is asked for.
var ErrNoImages = errors.New("plain processes have no images")

// Maker starts processes. Make it with New.
type Maker struct {
	cfg     Config
	spawner *spawn.Spawner
}

// New returns a maker.
func New(cfg Config, spawner *spawn.Spawner) *Maker { return &Maker{cfg: cfg, spawner: spawner} }

// Build fails: there is nothing to warm up.
func (m *Maker) Build(context.Context, image.Image) error { return ErrNoImages }

// Restore fails likewise.
func (m *Maker) Restore(context.Context, string, <-chan struct{}) (sandbox.Sandbox, error) {
	return nil, ErrNoImages
}

// Boot starts one interpreter in an empty folder of its own.
func (m *Maker) Boot(ctx context.Context) (sandbox.Sandbox, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, m.cfg.StartTimeout, fmt.Errorf("not ready within %s", m.cfg.StartTimeout))
	defer cancel()
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	id := m.cfg.Prefix + hex.EncodeToString(b[:])
	folder := filepath.Join(m.cfg.Dir, id)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	group, err := m.cfg.Groups.Create(id, m.cfg.Group)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	return sandbox.Start(ctx, m.spawner, sandbox.Config{
		ID: id, Image: ImageName,
		Argv: worker.Args(m.cfg.Python, worker.Boot, "", "", nil), Env: bundle.Environment(), Dir: folder,
		Group: group, Folder: folder,
		Await: worker.Ready, KeepOutput: m.cfg.KeepOutput, OutputLimit: m.cfg.OutputLimit,
	})
}
