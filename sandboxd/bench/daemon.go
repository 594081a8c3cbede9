package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/client"
)

// daemon is one sandboxd that is measured.
type daemon struct {
	name     string // what its rows are called, "" if it is alone
	dir      string
	cmd      *exec.Cmd
	client   *client.Client
	overload samples
	steady   samples
	times    [2]time.Duration // spent in overload and in steady load
	// trajectories is nil where each call has a sandbox of its own.
	trajectories *trajectories
	cpu, own     time.Duration // of the sandboxes and of the daemon, during overload
}

// measureDaemons measures one program against daemons that keep only its image.
// Several take turns, so that what else the machine does meets them alike.
func measureDaemons(ctx context.Context, o options, p program, t *table) error {
	slots := 2 * runtime.NumCPU()
	var daemons []*daemon
	defer func() {
		for _, d := range daemons {
			d.stop()
		}
	}()
	binaries := o.binaries
	if o.trajectories {
		binaries = append(slices.Clone(binaries), binaries[len(binaries)-1])
	}
	for i, binary := range binaries {
		d := &daemon{}
		if len(binaries) > 1 {
			d.name = fmt.Sprintf(" (%d: %s)", i+1, binary)
		}
		if i == len(o.binaries) {
			d.name += ", a sandbox per trajectory"
			d.trajectories = newTrajectories()
		}
		daemons = append(daemons, d)
		runsc := ""
		if len(o.runscs) > 0 {
			runsc = o.runscs[min(i, len(o.runscs)-1)]
		}
		if err := d.start(ctx, o, binary, runsc, p, slots); err != nil {
			return err
		}
	}
	for _, d := range daemons {
		fmt.Fprintf(os.Stderr, "%s: cold%s\n", p.name, d.name)
		t.add("gVisor, cold"+d.name, p.name, inOrder(ctx, o.calls, d.call(p, true)))
	}
	turn := o.seconds / time.Duration(o.rounds)
	for range o.rounds {
		for _, d := range daemons {
			fmt.Fprintf(os.Stderr, "%s: overload%s\n", p.name, d.name)
			if err := full(ctx, d.client); err != nil {
				return err
			}
			before, own, begin := d.sandboxCPU(), d.ownCPU(), time.Now()
			closedLoop(ctx, &d.overload, 4*slots, turn, d.call(p, false))
			d.times[0] += time.Since(begin)
			// What was taken from the shelf is made anew, so that each call pays for one.
			if err := full(ctx, d.client); err != nil {
				return err
			}
			d.cpu += d.sandboxCPU() - before
			d.own += d.ownCPU() - own
		}
	}
	rate := 0.6 * daemons[0].overload.measurement(daemons[0].times[0]).perSecond
	for range o.rounds {
		for _, d := range daemons {
			fmt.Fprintf(os.Stderr, "%s: pool at %.1f calls/s%s\n", p.name, rate, d.name)
			if err := full(ctx, d.client); err != nil {
				return err
			}
			begin := time.Now()
			openLoop(ctx, &d.steady, rate, turn, d.call(p, false))
			d.times[1] += time.Since(begin)
		}
	}
	for _, d := range daemons {
		t.add("warm pool, 60 % of its capacity"+d.name, p.name, d.steady.measurement(d.times[1]))
	}
	for _, d := range daemons {
		m := d.overload.measurement(d.times[0])
		calls := time.Duration(max(1, len(d.overload.all)))
		m.cpu, m.own = d.cpu/calls, d.own/calls
		t.add("warm pool, overload"+d.name, p.name, m)
	}
	return ctx.Err()
}

func (d *daemon) start(ctx context.Context, o options, binary, runsc string, p program, slots int) error {
	var err error
	if d.dir, err = os.MkdirTemp("", "sbench"); err != nil {
		return err
	}
	args := []string{"--state-dir=" + d.dir, "--cache-dir=" + filepath.Join(os.TempDir(), "sandboxd-test-rootfs"), "--python=" + o.python,
		fmt.Sprintf("--pool=%s=%d", p.image, 2*slots), fmt.Sprintf("--slots=%d", slots), "--log-level=error"}
	if d.trajectories != nil {
		args = append(args, "--isolation=trajectory", fmt.Sprintf("--kept=%d", 8*slots))
	}
	if runsc != "" {
		args = append(args, "--runsc="+runsc)
	}
	d.cmd = exec.CommandContext(ctx, binary, args...)
	d.cmd.Stderr = os.Stderr
	d.cmd.Cancel = func() error { return d.cmd.Process.Signal(syscall.SIGTERM) }
	if err := d.cmd.Start(); err != nil {
		return err
	}
	if d.client, err = client.New(client.Config{Address: filepath.Join(d.dir, "sandboxd.sock")}); err != nil {
		return err
	}
	return full(ctx, d.client)
}

func (d *daemon) stop() {
	if d.client != nil {
		d.client.Close()
	}
	if d.cmd != nil && d.cmd.Process != nil {
		_ = d.cmd.Process.Signal(syscall.SIGTERM)
		_ = d.cmd.Wait()
	}
	os.RemoveAll(d.dir)
}

func (d *daemon) call(p program, cold bool) func(context.Context) error {
	return func(ctx context.Context) error {
		req := client.Request{Code: p.code, Image: p.image, Cold: cold}
		if d.trajectories != nil {
			var done func()
			req.Trajectory, done = d.trajectories.next()
			defer done()
		}
		r, err := d.client.Run(ctx, req)
		if err == nil && r.Outcome != "ok" {
			err = fmt.Errorf("%s: %s %s", r.Outcome, r.Message, r.Stderr.Text())
		}
		return err
	}
}

// ownCPU is the CPU time of the daemon's own process so far.
func (d *daemon) ownCPU() time.Duration {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", d.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	var ticks int64
	for _, i := range []int{11, 12} { // user and system time, of 10 ms each
		n, _ := strconv.ParseInt(fields[i], 10, 64)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// sandboxCPU is the CPU time of all the daemon's sandboxes so far, those that are
// gone included, by the control group that it has made for them; 0 without one.
func (d *daemon) sandboxCPU() time.Duration {
	sum := sha256.Sum256([]byte(d.dir))
	group := "sandboxd-" + hex.EncodeToString(sum[:])[:8]
	var used time.Duration
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() || e.Name() != group {
			return nil
		}
		if data, err := os.ReadFile(filepath.Join(path, "cpuacct.usage")); err == nil {
			n, _ := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
			used = max(used, time.Duration(n))
		} else if data, err := os.ReadFile(filepath.Join(path, "cpu.stat")); err == nil {
			if _, rest, ok := strings.Cut(string(data), "usage_usec "); ok {
				n, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
				used = max(used, time.Duration(n)*time.Microsecond)
			}
		}
		return fs.SkipDir
	})
	return used
}
