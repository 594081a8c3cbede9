package daemon

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/internal/sandbox/image"
	"github.com/sluice-rl/sluice/sandboxd/internal/serve/admission"
	"github.com/sluice-rl/sluice/topology/process"
)

// ErrConfig occurs when flags or environment variables make no sense.
var ErrConfig = errors.New("configuration")

// Isolation levels.
const (
	// Call: a sandbox for each call.
	Call = "call"
	// Trajectory: the calls of one trajectory may share one.
	Trajectory = "trajectory"
	// Process: none.
	Process = "process"
)

// Config is everything that can be set. Flags gives every field its default.
type Config struct {
	StateDir, CacheDir, Socket string
	Listen, TokenFile          string

	Isolation       string
	NotSandbox      bool
	Kept, KeptCalls int
	KeptIdle        time.Duration

	Runsc, Platform          string
	Root, RootFormat, Python string

	Memory, TmpSize, ShmSize         size
	OutputLimit, KeepOutput, MaxCode size
	CPUs                             float64
	Processes, OpenFiles             uint
	Timeout, MaxTimeout              time.Duration
	Slots, Reservable, Queue         int
	MaxWait                          time.Duration
	Pool                             map[string]int
	MakersPerCore                    float64
	WarmWait, StartTimeout           time.Duration
	DrainTimeout, ProbeInterval      time.Duration
	BodyTime                         time.Duration
	BreakerThreshold, BreakerWindow  int
	BreakerRate                      float64
	BreakerCooldown                  time.Duration
	noCgroups                        bool // tests: as if the machine had none
}

// Flags defines every flag, with its default, and returns the config that parsing
// fills.
func Flags(flags *process.Flags) *Config {
	c := &Config{
		Memory: 512 << 20, TmpSize: 64 << 20, ShmSize: 16 << 20,
		OutputLimit: 16 << 20, KeepOutput: 64 << 10, MaxCode: 4 << 20,
	}
	cores := runtime.NumCPU()
	fs := flags.Group("Service")
	fs.StringVar(&c.StateDir, "state-dir", defaultStateDir(), "folder for images, running sandboxes and the socket; one daemon per folder")
	fs.StringVar(&c.CacheDir, "cache-dir", "", "folder for built root file systems (default STATE-DIR/rootfs)")
	fs.StringVar(&c.Socket, "socket", "", "unix socket to serve on (default STATE-DIR/sandboxd.sock)")
	fs.StringVar(&c.Listen, "listen", "", "also serve on this TCP address; needs --token-file")
	fs.StringVar(&c.TokenFile, "token-file", "", "file holding the token that TCP clients must send")
	fs = flags.Group("Isolation")
	fs.StringVar(&c.Isolation, "isolation", Call, "what has a sandbox of its own: each call; each trajectory, whose calls then run in one, each in a process, with a user and a /tmp of its own (THREATMODEL.md says what that gives up); or process: nothing, there is no sandbox at all, for machines where gVisor cannot run")
	fs.IntVar(&c.Kept, "kept", 0, "sandboxes kept between the calls of their trajectories, some 85 MiB each: fewer than trajectories are at work means that most find theirs gone; 0: as many as slots")
	fs.IntVar(&c.KeptCalls, "kept-calls", 32, "calls that a sandbox of a trajectory may run")
	fs.DurationVar(&c.KeptIdle, "kept-idle", time.Minute, "how long a sandbox of a trajectory waits for its next call")
	fs.BoolVar(&c.NotSandbox, "i-understand-this-is-not-a-sandbox", false, "required with --isolation=process")
	fs.StringVar(&c.Runsc, "runsc", "", "gVisor's runsc (default: .tools/bin/runsc beside the daemon's bin folder, then PATH)")
	fs.StringVar(&c.Platform, "platform", "systrap", "gVisor platform: systrap, ptrace or kvm")
	fs.StringVar(&c.Root, "root", "host", "root file system: host (this machine's Python), dir:/path, oci:reference, oci:layout:/dir or oci:archive:/file.tar")
	fs.StringVar(&c.RootFormat, "root-format", "auto", "erofs, dir, or auto: erofs where mkfs.erofs is installed")
	fs.StringVar(&c.Python, "python", "/usr/bin/python3", "interpreter, an absolute path in the root file system")
	fs = flags.Group("Limits of a program")
	fs.Var(&c.Memory, "memory", "memory of one sandbox, interpreter and gVisor (about 85 MiB) included")
	fs.Float64Var(&c.CPUs, "cpus", 1, "CPU quota of one sandbox, in cores")
	fs.UintVar(&c.Processes, "processes", 64, "processes and threads of one program")
	fs.UintVar(&c.OpenFiles, "open-files", 256, "file descriptors of one process")
	fs.Var(&c.TmpSize, "tmp-size", "size of a program's /tmp")
	fs.Var(&c.ShmSize, "shm-size", "size of a program's /dev/shm")
	fs.Var(&c.OutputLimit, "output-limit", "bytes a program may write to stdout and stderr together before it is stopped")
	fs.Var(&c.KeepOutput, "keep-output", "bytes kept from the end of each stream, at least 16KiB")
	fs.Var(&c.MaxCode, "max-code", "largest program accepted")
	fs.DurationVar(&c.Timeout, "timeout", 30*time.Second, "run time of a program that asks for none")
	fs.DurationVar(&c.MaxTimeout, "max-timeout", 10*time.Minute, "longest run time that may be asked for")
	fs = flags.Group("Admission")
	fs.IntVar(&c.Slots, "slots", max(4, 2*cores), "calls and reservations at once")
	fs.IntVar(&c.Reservable, "reservable", -1, "how many slots reservations may hold; -1: all but one")
	fs.IntVar(&c.Queue, "queue", 256, "callers that may wait for a slot")
	fs.DurationVar(&c.MaxWait, "max-wait", 30*time.Second, "longest wait in the queue; then the caller is told to come back")
	fs = flags.Group("Warm sandboxes")
	warm := map[string]int{image.Bare: cores, image.Numpy: max(1, cores/2), image.Sympy: cores}
	fs.StringToIntVar(&c.Pool, "pool", warm, "warm sandboxes to keep, per image; an image left out is not built; none=0 turns the pool off")
	// Of a map pflag would print the default in another order each time.
	fs.Lookup("pool").DefValue = fmt.Sprintf("[%s=%d,%s=%d,%s=%d]", image.Bare, warm[image.Bare], image.Numpy, warm[image.Numpy], image.Sympy, warm[image.Sympy])
	fs.Float64Var(&c.MakersPerCore, "makers-per-core", 1, "warm sandboxes in the making at once, per core")
	fs.DurationVar(&c.WarmWait, "warm-wait", 5*time.Second, "longest wait for a warm sandbox before one is booted")
	fs.DurationVar(&c.StartTimeout, "start-timeout", time.Minute, "longest time to boot, restore or checkpoint one sandbox")
	fs = flags.Group("Stops and failures")
	fs.DurationVar(&c.DrainTimeout, "drain-timeout", 30*time.Second, "time for running calls to finish after the first signal")
	fs.DurationVar(&c.BodyTime, "body-timeout", 30*time.Second, "longest time for a request's body to arrive")
	fs.DurationVar(&c.ProbeInterval, "probe-interval", 30*time.Second, "how often a real program is run to see that all works")
	fs.IntVar(&c.BreakerThreshold, "breaker-threshold", 5, "infrastructure failures among --breaker-window results that stop intake")
	fs.IntVar(&c.BreakerWindow, "breaker-window", 20, "results that the circuit breaker looks at")
	fs.Float64Var(&c.BreakerRate, "breaker-rate", 0.01, "share of infrastructure failures among the last 1000 results above which intake stops too; 0: whatever the share")
	fs.DurationVar(&c.BreakerCooldown, "breaker-cooldown", 5*time.Second, "pause before an open circuit breaker is tried again")
	return c
}

// Complete fills what depends on other fields and says what is wrong.
func (c *Config) Complete() error {
	var err error
	if c.StateDir, err = filepath.Abs(c.StateDir); err != nil {
		return fmt.Errorf("%w: --state-dir: %w", ErrConfig, err)
	}
	if c.CacheDir == "" {
		c.CacheDir = filepath.Join(c.StateDir, "rootfs")
	}
	if c.CacheDir, err = filepath.Abs(c.CacheDir); err != nil {
		return fmt.Errorf("%w: --cache-dir: %w", ErrConfig, err)
	}
	if c.Socket == "" {
		c.Socket = filepath.Join(c.StateDir, "sandboxd.sock")
	}
	if c.Socket, err = filepath.Abs(c.Socket); err != nil {
		return fmt.Errorf("%w: --socket: %w", ErrConfig, err)
	}
	if c.Reservable < 0 {
		c.Reservable = max(1, c.Slots-1)
	}
	if c.Kept == 0 {
		c.Kept = c.Slots
	}
	delete(c.Pool, "none")
	return c.validate()
}

func (c *Config) validate() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
	}
	if err := c.admission().Validate(); err != nil {
		bad("%w", err)
	}
	if len(c.Socket) > 107 {
		bad("--socket %s is %d bytes long, a unix socket's path may have 107: choose a shorter one", c.Socket, len(c.Socket))
	}
	if c.Isolation != Call && c.Isolation != Trajectory && c.Isolation != Process {
		bad("--isolation=%s: want call, trajectory or process", c.Isolation)
	}
	if c.Kept < 0 || c.KeptCalls < 1 || c.KeptIdle <= 0 {
		bad("--kept must be at least 0, --kept-calls at least 1, and --kept-idle more than 0")
	}
	if c.Isolation == Process && !c.NotSandbox {
		bad("--isolation=process runs programs as plain processes of this machine, which is no protection at all; if that is what you want, add --i-understand-this-is-not-a-sandbox")
	}
	if c.Listen != "" {
		if c.TokenFile == "" {
			bad("--listen needs --token-file: whoever reaches the port can run programs")
		}
		if _, _, err := net.SplitHostPort(c.Listen); err != nil {
			bad("--listen: %w", err)
		}
	}
	if c.Memory < 128<<20 {
		bad("--memory=%s: an interpreter in gVisor needs at least 128MiB", c.Memory.String())
	}
	if c.KeepOutput < 16<<10 {
		bad("--keep-output=%s: want at least 16KiB, callers count on 4096 characters", c.KeepOutput.String())
	}
	if c.CPUs < 0.01 {
		bad("--cpus=%g: want at least 0.01", c.CPUs)
	}
	if c.Processes < 1 || c.OpenFiles < 16 {
		bad("--processes and --open-files must be at least 1 and 16")
	}
	if c.Timeout <= 0 || c.MaxTimeout < c.Timeout {
		bad("--timeout=%s: want more than 0 and at most --max-timeout=%s", c.Timeout, c.MaxTimeout)
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"max-wait", c.MaxWait}, {"warm-wait", c.WarmWait}, {"start-timeout", c.StartTimeout}, {"drain-timeout", c.DrainTimeout}, {"probe-interval", c.ProbeInterval}, {"body-timeout", c.BodyTime}, {"breaker-cooldown", c.BreakerCooldown}} {
		if d.value <= 0 {
			bad("--%s=%s: want more than 0", d.name, d.value)
		}
	}
	if c.BreakerRate < 0 || c.BreakerRate > 1 {
		bad("--breaker-rate=%g: want a share from 0 to 1", c.BreakerRate)
	}
	if c.BreakerThreshold < 1 || c.BreakerWindow < c.BreakerThreshold {
		bad("--breaker-threshold=%d must be at least 1 and at most --breaker-window=%d", c.BreakerThreshold, c.BreakerWindow)
	}
	if c.MakersPerCore <= 0 {
		bad("--makers-per-core=%g: want more than 0", c.MakersPerCore)
	}
	known := map[string]bool{}
	for _, img := range image.Standard() {
		known[img.Name] = true
	}
	for name, n := range c.Pool {
		if !known[name] || n < 0 {
			bad("--pool: %s=%d: want bare, numpy or sympy, and 0 or more", name, n)
		}
	}
	return errors.Join(errs...)
}

func (c *Config) admission() admission.Config {
	return admission.Config{Slots: c.Slots, Reservable: c.Reservable, Queue: c.Queue}
}

func defaultStateDir() string {
	if os.Geteuid() == 0 {
		return "/var/lib/sandboxd"
	}
	if dir := os.Getenv("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "sandboxd")
	}
	if home, err := os.UserHomeDir(); err == nil {
		return filepath.Join(home, ".local", "state", "sandboxd")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("sandboxd-%d", os.Geteuid()))
}
