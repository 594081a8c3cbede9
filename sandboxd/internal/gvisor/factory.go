// Package gvisor makes sandboxes: booted from nothing, or restored from an
// image that it checkpointed itself.
//
// Reads: the root file system, the images. Writes: bundles, images and one
// folder per sandbox under the state directory. Promises: every sandbox has a
// fresh id, its own control group and its own folder, and takes both away with
// it when it is destroyed.
package gvisor

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/internal/gvisor/bundle"
	"github.com/sluice-rl/sluice/sandboxd/internal/gvisor/exitcall"
	"github.com/sluice-rl/sluice/sandboxd/internal/gvisor/rootfs"
	"github.com/sluice-rl/sluice/sandboxd/internal/gvisor/runsc"
	"github.com/sluice-rl/sluice/sandboxd/internal/host/cgroup"
	"github.com/sluice-rl/sluice/sandboxd/internal/host/spawn"
	"github.com/sluice-rl/sluice/sandboxd/internal/sandbox"
	"github.com/sluice-rl/sluice/sandboxd/internal/sandbox/image"
	"github.com/sluice-rl/sluice/sandboxd/internal/sandbox/worker"
)

// ErrNoImage occurs when a restore is asked for from an image that was not built.
var ErrNoImage = errors.New("image was not built")

// Config is what every sandbox of one daemon has in common.
type Config struct {
	Runtime runsc.Runtime
	Root    rootfs.Root
	Groups  *cgroup.Manager
	Limits  bundle.Limits
	Group   cgroup.Limits
	// MemoryLimit is a sandbox's, in bytes. It is kept by looking where no control
	// group keeps it.
	MemoryLimit int64
	// StateDir is the daemon's own folder.
	StateDir string
	// RunDir holds a folder per sandbox.
	RunDir string
	// Prefix begins every sandbox id; unique to the state directory.
	Prefix string
	// KeepOutput and OutputLimit are the streams' bounds in bytes.
	KeepOutput  int
	OutputLimit int64
	// StartTimeout bounds a boot, a restore and a checkpoint each.
	StartTimeout time.Duration
	// Exits tells of programs' exits; may be nil unless Shared.
	Exits *exitcall.Listener
	// Shared makes sandboxes that may run several programs, one after another.
	Shared bool
}

// Factory makes sandboxes; safe for concurrent use. Make it with New.
type Factory struct {
	cfg     Config
	spawner *spawn.Spawner
	log     *slog.Logger
	mu      sync.Mutex
	built   map[string]bool
}

// New prepares the bundle of cold sandboxes.
func New(cfg Config, spawner *spawn.Spawner, log *slog.Logger) (*Factory, error) {
	f := &Factory{cfg: cfg, spawner: spawner, log: log, built: map[string]bool{}}
	for _, dir := range []string{cfg.Runtime.SharedRoot, f.cfg.RunDir, f.imageDir("")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("prepare state directory: %w", err)
		}
	}
	return f, f.writeBundle(worker.Boot, image.Image{Name: image.Cold})
}

func (f *Factory) imageDir(name string) string {
	return filepath.Join(f.cfg.StateDir, "images", name)
}
func (f *Factory) bundleDir(name string) string {
	return filepath.Join(f.cfg.StateDir, "bundles", name)
}

func (f *Factory) writeBundle(mode worker.Mode, img image.Image) error {
	var share *worker.Share
	if f.cfg.Shared {
		share = &worker.Share{TmpBytes: f.cfg.Limits.TmpBytes, ShmBytes: f.cfg.Limits.ShmBytes, User: firstUser, Filter: bundle.Filter()}
	}
	spec := bundle.Spec{
		RootPath: f.cfg.Root.Path,
		EROFS:    f.cfg.Root.EROFS,
		Args:     worker.Args(f.cfg.Root.Python, mode, img.Exercise, img.Wake, share),
		Limits:   f.cfg.Limits,
		Shared:   f.cfg.Shared,
	}
	return spec.Write(f.bundleDir(img.Name))
}

// firstUser is the user of the first program in a shared sandbox.
const firstUser = 100_000

// Boot makes a cold sandbox.
func (f *Factory) Boot(ctx context.Context) (sandbox.Sandbox, error) {
	return f.start(ctx, image.Cold, worker.Ready, nil, func(id, folder string) []string {
		return f.cfg.Runtime.Run(folder, f.bundleDir(image.Cold), id)
	})
}

// BootLimited makes a cold sandbox with another memory limit than the others.
func (f *Factory) BootLimited(ctx context.Context, memory int64) (sandbox.Sandbox, error) {
	other := &Factory{cfg: f.cfg, spawner: f.spawner, log: f.log}
	other.cfg.Group.MemoryBytes, other.cfg.MemoryLimit = memory, memory
	return other.Boot(ctx)
}

// Restore makes a warm sandbox from a built image, at little weight and with a
// rehearsal until hurry is closed.
func (f *Factory) Restore(ctx context.Context, name string, hurry <-chan struct{}) (sandbox.Sandbox, error) {
	f.mu.Lock()
	built := f.built[name]
	f.mu.Unlock()
	if !built {
		return nil, fmt.Errorf("%w: %q", ErrNoImage, name)
	}
	return f.start(ctx, name, worker.Ready, hurry, func(id, folder string) []string {
		return f.cfg.Runtime.Restore(folder, f.imageDir(name), f.bundleDir(name), id)
	})
}

// Build boots an image's interpreter, exercises it and checkpoints it. It is
// done at every start of the daemon: a checkpoint depends on the processor's
// features and on the very bytes of the root.
func (f *Factory) Build(ctx context.Context, img image.Image) error {
	begin := time.Now()
	if err := f.writeBundle(worker.Clone, img); err != nil {
		return err
	}
	dir := f.imageDir(img.Name)
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)); err != nil {
		return fmt.Errorf("build image %s: %w", img.Name, err)
	}
	var folder, id string
	template, err := f.start(ctx, img.Name, worker.Checkpoint, nil, func(newID, newFolder string) []string {
		id, folder = newID, newFolder
		return f.cfg.Runtime.Run(folder, f.bundleDir(img.Name), id)
	})
	if err != nil {
		return fmt.Errorf("build image %s: %w", img.Name, err)
	}
	err = f.checkpoint(ctx, folder, dir, id)
	err = errors.Join(err, template.Destroy())
	if err != nil {
		return fmt.Errorf("build image %s: %w", img.Name, err)
	}
	f.mu.Lock()
	f.built[img.Name] = true
	f.mu.Unlock()
	f.log.Info("image built", "image", img.Name, "took", time.Since(begin).Round(time.Millisecond))
	return nil
}

// checkpoint saves the running sandbox id, which ends it.
func (f *Factory) checkpoint(ctx context.Context, folder, dir, id string) error {
	ctx, cancel := context.WithTimeout(ctx, f.cfg.StartTimeout)
	defer cancel()
	argv := f.cfg.Runtime.Checkpoint(folder, dir, id)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.SysProcAttr = f.cfg.Runtime.Env(), f.cfg.Runtime.Attr()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("checkpoint: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// start starts a sandbox; one with a hurry is a clone.
func (f *Factory) start(ctx context.Context, name, await string, hurry <-chan struct{}, argv func(id, folder string) []string) (sandbox.Sandbox, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, f.cfg.StartTimeout, fmt.Errorf("not ready within %s", f.cfg.StartTimeout))
	defer cancel()
	id := f.newID()
	folder := filepath.Join(f.cfg.RunDir, id)
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, fmt.Errorf("make sandbox folder: %w", err)
	}
	group, err := f.cfg.Groups.Create(id, f.cfg.Group)
	if err != nil {
		return nil, errors.Join(err, os.Remove(folder))
	}
	return sandbox.Start(ctx, f.spawner, sandbox.Config{
		ID: id, Image: name, Warm: hurry != nil,
		Argv: argv(id, folder), Env: f.cfg.Runtime.Env(), Attr: f.cfg.Runtime.Attr(),
		Group: group, Kernel: &kernel{Listener: f.cfg.Exits, id: id, folder: folder}, MemoryLimit: f.cfg.MemoryLimit, Folder: folder,
		Await: await, Hurry: hurry, Shared: f.cfg.Shared, KeepOutput: f.cfg.KeepOutput, OutputLimit: f.cfg.OutputLimit,
	})
}

func (f *Factory) newID() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	return f.cfg.Prefix + hex.EncodeToString(b[:])
}
