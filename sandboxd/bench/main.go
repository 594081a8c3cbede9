package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/sluice-rl/sluice/sandboxd/client"
)

// program is one column of the table.
type program struct{ name, image, code string }

// The sympy expression is not one that the image's preparation has computed.
var programs = []program{
	{"print", "bare", "print(6*7)"},
	{"numpy", "numpy", "import numpy as np\nprint(np.arange(10).sum())"},
	{"sympy", "sympy", "import sympy\nx = sympy.symbols('x')\nprint(sympy.integrate(x*sympy.exp(x), x))"},
}

type options struct {
	binaries, runscs, only []string
	python, dockerImage    string
	calls, rounds          int
	trajectories           bool
	seconds                time.Duration
}

func main() {
	var o options
	pflag.StringSliceVar(&o.binaries, "binary", []string{"bin/sandboxd"}, "sandboxd to measure; several take turns, and all work at 60 % of the first one's capacity")
	pflag.StringSliceVar(&o.runscs, "runsc", nil, "passed on to it; one for all of several, or one for each")
	pflag.StringVar(&o.python, "python", "/usr/bin/python3", "interpreter of the bare subprocess and of the sandboxes")
	pflag.StringVar(&o.dockerImage, "docker-image", "", "image with that interpreter, numpy and sympy for the `docker run` row")
	pflag.IntVar(&o.calls, "calls", 20, "calls per row measured one after another")
	pflag.StringSliceVar(&o.only, "only", nil, "programs to measure (print, numpy, sympy), and the warm pool alone; default: everything")
	pflag.IntVar(&o.rounds, "rounds", 2, "turns into which each measurement under load is cut")
	pflag.BoolVar(&o.trajectories, "trajectories", false, fmt.Sprintf("measure the last of --binary once more, with --isolation=trajectory and %d calls of each trajectory", callsOfTrajectory))
	pflag.DurationVar(&o.seconds, "seconds", 10*time.Second, "length of each measurement under load")
	pflag.Parse()
	if n := len(o.runscs); n > 1 && n != len(o.binaries) {
		fmt.Fprintf(os.Stderr, "bench: --runsc names %d for %d of --binary: want one, or as many\n", n, len(o.binaries))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	t := newTable()
	for _, p := range programs {
		if o.only != nil {
			break
		}
		fmt.Fprintf(os.Stderr, "%s: bare subprocess\n", p.name)
		t.add("bare subprocess", p.name, inOrder(ctx, o.calls, func(ctx context.Context) error {
			return exec.CommandContext(ctx, o.python, "-B", "-c", p.code).Run()
		}))
		fmt.Fprintf(os.Stderr, "%s: warm interpreter\n", p.name)
		t.add("the program alone, in a warm interpreter without a sandbox", p.name, warmInterpreter(ctx, o, p))
		fmt.Fprintf(os.Stderr, "%s: docker\n", p.name)
		t.add("`docker run`", p.name, docker(ctx, o, p))
	}
	for _, p := range programs {
		if o.only != nil && !slices.Contains(o.only, p.name) {
			continue
		}
		if err := measureDaemons(ctx, o, p, t); err != nil {
			return err
		}
	}
	fmt.Printf("%d cores, load average %s at the end; p50 / p95 in ms as the caller sees them.\n\n", runtime.NumCPU(), loadAverage())
	t.print(os.Stdout)
	return ctx.Err()
}

// full waits until the pool is full.
func full(ctx context.Context, c *client.Client) error {
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		h, err := c.Health(ctx)
		if err != nil || h.Status == "starting" {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			continue
		}
		ok := len(h.Images) > 0
		for _, img := range h.Images {
			if img.Error != "" {
				return errors.New(img.Error)
			}
			ok = ok && img.Ready == img.Target
		}
		if ok {
			return nil
		}
	}
	return errors.New("the daemon's pool does not fill within two minutes")
}

// docker measures `docker run` where there is a Docker with the image.
func docker(ctx context.Context, o options, p program) measurement {
	if _, err := exec.LookPath("docker"); err != nil {
		return measurement{why: "no docker"}
	}
	if exec.CommandContext(ctx, "docker", "info").Run() != nil {
		return measurement{why: "no Docker daemon"}
	}
	if o.dockerImage == "" {
		return measurement{why: "no --docker-image"}
	}
	return inOrder(ctx, min(o.calls, 10), func(ctx context.Context) error {
		return exec.CommandContext(ctx, "docker", "run", "--rm", "--network=none", o.dockerImage, o.python, "-B", "-c", p.code).Run()
	})
}
