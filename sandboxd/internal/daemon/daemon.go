package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/api"
	"github.com/sluice-rl/sluice/sandboxd/internal/gvisor"
	"github.com/sluice-rl/sluice/sandboxd/internal/gvisor/bundle"
	"github.com/sluice-rl/sluice/sandboxd/internal/gvisor/exitcall"
	"github.com/sluice-rl/sluice/sandboxd/internal/gvisor/rootfs"
	"github.com/sluice-rl/sluice/sandboxd/internal/gvisor/runsc"
	"github.com/sluice-rl/sluice/sandboxd/internal/host/cgroup"
	"github.com/sluice-rl/sluice/sandboxd/internal/host/reaper"
	"github.com/sluice-rl/sluice/sandboxd/internal/host/spawn"
	"github.com/sluice-rl/sluice/sandboxd/internal/host/state"
	"github.com/sluice-rl/sluice/sandboxd/internal/sandbox/image"
	"github.com/sluice-rl/sluice/sandboxd/internal/sandbox/plain"
	"github.com/sluice-rl/sluice/sandboxd/internal/serve"
	"github.com/sluice-rl/sluice/sandboxd/internal/serve/admission"
	"github.com/sluice-rl/sluice/sandboxd/internal/serve/breaker"
	"github.com/sluice-rl/sluice/sandboxd/internal/serve/keep"
	"github.com/sluice-rl/sluice/sandboxd/internal/serve/metrics"
	"github.com/sluice-rl/sluice/sandboxd/internal/serve/pool"
)

// hostProcesses bounds the host's processes and threads of one sandbox. gVisor
// itself needs several hundred at worst and crashes below that.
const hostProcesses = 2048

// slowWindow is how many results --breaker-rate is a share of.
const slowWindow = 1000

// renewTime bounds how long a sandbox of a trajectory may take to be rid of a program:
// some milliseconds, longer if that has left very many processes.
const renewTime = 10 * time.Second

// addressSpaces is how much address space a process gets where no control group
// bounds memory, as a multiple of the memory limit.
const addressSpaces = 16

// Daemon is everything but the listeners. Make it with New; Close must be called.
type Daemon struct {
	cfg         *Config
	log         *slog.Logger
	dir         *state.Dir
	groups      *cgroup.Manager
	spawner     *spawn.Spawner
	reaper      *reaper.Reaper
	exits       *exitcall.Listener
	pool        *pool.Pool
	gate        *admission.Gate
	service     *serve.Service
	metrics     *metrics.Metrics
	made        pool.Maker
	protections api.Protections

	mu       sync.Mutex
	ready    bool
	stopping bool
	reason   string // why it is not ready
}

// New takes the state directory, sweeps it, and prepares everything that a call
// needs. It runs no program yet.
func New(ctx context.Context, cfg *Config, log *slog.Logger) (*Daemon, error) {
	d := &Daemon{cfg: cfg, log: log, metrics: metrics.New(), reason: "starting"}
	if err := d.open(); err != nil {
		return nil, err
	}
	maker, err := d.maker(ctx)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	d.made = maker
	d.protections = protect(cfg, d.groups)
	for _, m := range d.protections.Missing {
		log.Warn("protection is missing or degraded", "which", m)
	}
	if why := d.groups.Why(); why != "" {
		log.Warn("control groups are not fully usable", "why", why)
	}
	makers := max(1, int(math.Round(cfg.MakersPerCore*float64(runtime.NumCPU()))))
	targets := cfg.Pool
	if cfg.Isolation == Process {
		targets = nil // plain processes start fast enough
	}
	d.pool = pool.New(pool.Config{Targets: targets, Makers: makers, WarmWait: cfg.WarmWait}, image.Standard(), maker, d.metrics, log)
	d.gate = admission.New(cfg.admission())
	d.metrics.WatchSlots(func() metrics.Slots {
		g := d.gate.State()
		return metrics.Slots{
			Running: d.service.Running(), Idle: g.Idle, CallsWaiting: g.WaitingCalls, ReservationsWaiting: g.Waiting - g.WaitingCalls,
			EvictedForCalls: g.EvictedForCalls, EvictedForReservations: g.EvictedForReservations,
		}
	})
	var names []string
	for _, img := range image.Standard() {
		names = append(names, img.Name)
	}
	slow := slowWindow
	if cfg.BreakerRate == 0 {
		slow = 0
	}
	var kept *keep.Config
	if cfg.Isolation == Trajectory {
		kept = &keep.Config{Most: cfg.Kept, Calls: cfg.KeptCalls, Idle: cfg.KeptIdle, RenewTime: renewTime}
	}
	d.service = serve.New(serve.Config{
		DefaultTimeout: cfg.Timeout, MaxTimeout: cfg.MaxTimeout, MaxCode: int(cfg.MaxCode), MaxWait: cfg.MaxWait,
		Images: names, Choose: image.Choose, Keep: kept,
	}, d.gate, d.pool, breaker.New(breaker.Config{
		Window: cfg.BreakerWindow, Threshold: cfg.BreakerThreshold, Cooldown: cfg.BreakerCooldown,
		SlowWindow: slow, SlowThreshold: int(cfg.BreakerRate * slowWindow),
	}), d.metrics, d.protections, log)
	return d, nil
}

// open locks and sweeps the state directory.
func (d *Daemon) open() error {
	dir, err := state.Open(d.cfg.StateDir)
	if err != nil {
		return err
	}
	d.dir = dir
	if d.cfg.noCgroups {
		d.groups = cgroup.Disabled("switched off")
	} else {
		d.groups = cgroup.Detect(dir.GroupName())
	}
	swept, err := dir.Sweep(d.groups, d.log)
	d.metrics.Swept.Add(float64(swept.Total()))
	if err != nil {
		// What cannot be removed now is only waste; refusing to start would
		// turn waste into an outage.
		d.log.Error("some of what a predecessor left could not be removed", "err", err)
	}
	d.spawner = spawn.New()
	if d.reaper, err = reaper.New(); err != nil {
		d.log.Warn("dead processes of sandboxes may stay in the process table", "err", err)
	}
	return nil
}

// maker returns what makes sandboxes at the configured isolation.
func (d *Daemon) maker(ctx context.Context) (pool.Maker, error) {
	cfg := d.cfg
	limits := cgroup.Limits{MemoryBytes: int64(cfg.Memory), CPUs: cfg.CPUs, HostProcesses: hostProcesses}
	if cfg.Isolation == Process {
		return plain.New(plain.Config{
			Python: cfg.Python, Dir: filepath.Join(d.dir.Path, "run"), Prefix: d.dir.Prefix(), Groups: d.groups, Group: limits,
			KeepOutput: int(cfg.KeepOutput), OutputLimit: int64(cfg.OutputLimit), StartTimeout: cfg.StartTimeout,
		}, d.spawner), nil
	}
	executable, _ := os.Executable()
	path, err := runsc.Locate(cfg.Runsc, executable)
	if err != nil {
		return nil, err
	}
	runtime := runsc.Runtime{
		Path: path, Platform: cfg.Platform, Rootless: os.Geteuid() != 0,
		SharedRoot: filepath.Join(d.dir.Path, "shared"),
	}
	// gVisor builds each sandbox's empty root on /tmp, which small container
	// images do not have.
	if err := os.MkdirAll("/tmp", 0o1777); err != nil {
		return nil, fmt.Errorf("gVisor needs /tmp: %w", err)
	}
	if d.exits, err = exitcall.Listen(d.dir.Path); err != nil && cfg.Isolation == Trajectory {
		return nil, fmt.Errorf("--isolation=%s needs gVisor's reports of exits: %w", Trajectory, err)
	} else if err != nil {
		d.log.Warn("programs' ends will be heard of some milliseconds late", "err", err)
	}
	runtime.ExitReports = d.exits.ConfigFile()
	if runtime.Sidecars, err = runsc.Prewarm(d.dir.Path, path, int64(cfg.Memory)); err != nil {
		d.log.Info("sandboxes cost a little more than they could", "why", err)
	}
	version, err := runtime.Version(ctx)
	if err != nil {
		return nil, err
	}
	root, err := rootfs.Build(ctx, rootfs.Config{Source: cfg.Root, Python: cfg.Python, CacheDir: cfg.CacheDir, Format: cfg.RootFormat}, d.log)
	if err != nil {
		return nil, err
	}
	inside := bundle.Limits{
		Processes: uint64(cfg.Processes), OpenFiles: uint64(cfg.OpenFiles),
		TmpBytes: int64(cfg.TmpSize), ShmBytes: int64(cfg.ShmSize), CPUs: cfg.CPUs,
	}
	if !d.groups.Has("memory") {
		// Looking is what bounds memory then; should the daemon itself stand still,
		// this bounds what one process can do meanwhile.
		inside.AddressSpace = addressSpaces * uint64(cfg.Memory)
	}
	made, err := gvisor.New(gvisor.Config{
		Runtime: runtime, Root: root, Groups: d.groups, Limits: inside, Group: limits, MemoryLimit: int64(cfg.Memory),
		StateDir: d.dir.Path, RunDir: filepath.Join(d.dir.Path, "run"), Prefix: d.dir.Prefix(),
		KeepOutput: int(cfg.KeepOutput), OutputLimit: int64(cfg.OutputLimit), StartTimeout: cfg.StartTimeout,
		Exits: d.exits, Shared: cfg.Isolation == Trajectory,
	}, d.spawner, d.log)
	if err != nil {
		return nil, err
	}
	d.log.Info("gVisor", "runsc", path, "version", version, "platform", cfg.Platform, "rootless", runtime.Rootless,
		"root", root.Path, "cgroups", d.groups.Version())
	return made, nil
}

// Prepare proves that a program runs, builds the first image, and proves it
// again from the pool; the other images follow in the background. Calls are taken once it returns nil.
func (d *Daemon) Prepare(ctx context.Context) error {
	if err := d.service.Probe(ctx, true); err != nil {
		return fmt.Errorf("the first program failed, so nothing would run here (platform %s; --platform=ptrace needs less of the machine, and --help says what containers need): %w", d.cfg.Platform, err)
	}
	tested, err := d.testProtections(ctx, d.protections)
	if err != nil {
		return fmt.Errorf("try the protections: %w", err)
	}
	d.mu.Lock()
	d.protections = tested
	d.mu.Unlock()
	d.service.SetProtections(tested)
	d.pool.Build(ctx)
	if len(d.pool.State()) > 0 {
		if err := d.service.Probe(ctx, false); err != nil {
			return fmt.Errorf("first warm program: %w", err)
		}
	}
	d.mu.Lock()
	d.ready, d.reason = true, ""
	d.mu.Unlock()
	return nil
}

// Watch probes regularly, and when an open breaker waits for it, until ctx ends.
func (d *Daemon) Watch(ctx context.Context) {
	regular := time.NewTicker(d.cfg.ProbeInterval)
	defer regular.Stop()
	tripped := time.NewTicker(500 * time.Millisecond)
	defer tripped.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-regular.C:
		case <-tripped.C:
			if !d.service.ShouldProbe() {
				continue
			}
		}
		if err := d.service.Probe(ctx, false); err != nil && ctx.Err() == nil {
			d.log.Error("probe failed", "err", err)
		}
	}
}

// Health describes the daemon and says whether it takes calls.
func (d *Daemon) Health() (api.Health, bool) {
	d.mu.Lock()
	ready, stopping, reason, protections := d.ready, d.stopping, d.reason, d.protections
	d.mu.Unlock()
	gate := d.gate.State()
	h := api.Health{
		Status: "ok", Version: version(), Protections: protections, Images: d.pool.State(),
		Slots: gate.Slots, Reservable: gate.Reservable, Reserved: gate.Reserved, Running: d.service.Running(), Waiting: gate.Waiting,
		Idle: gate.Idle, WaitingCalls: gate.WaitingCalls, Kept: d.service.Kept(),
	}
	open, tripReason := d.service.Tripped()
	switch {
	case stopping:
		h.Status, h.Reason = "stopping", "the daemon is stopping"
		return h, false
	case !ready:
		h.Status, h.Reason = "starting", reason
		return h, false
	case open:
		h.Status, h.Reason = "tripped", tripReason
		return h, false
	case len(protections.Missing) > 0:
		h.Status, h.Reason = "degraded", "some protections are missing, see protections.missing"
	}
	return h, true
}

// Service runs calls.
func (d *Daemon) Service() *serve.Service { return d.service }

// StopIntake refuses new calls and sends waiting callers away.
func (d *Daemon) StopIntake() {
	d.mu.Lock()
	d.stopping = true
	d.mu.Unlock()
	d.gate.Close()
}

// Close destroys every sandbox and gives the state directory up. The contexts of
// running calls must have ended.
func (d *Daemon) Close() error {
	var errs []error
	if d.pool != nil {
		errs = append(errs, d.pool.Close())
	}
	if d.service != nil {
		d.service.Close()
	}
	if d.spawner != nil {
		d.spawner.Close()
	}
	d.reaper.Close()
	errs = append(errs, d.exits.Close())
	if d.groups != nil {
		d.groups.Close()
	}
	errs = append(errs, d.dir.Close())
	return errors.Join(errs...)
}
