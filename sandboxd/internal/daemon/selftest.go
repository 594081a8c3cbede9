package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/api"
	"github.com/sluice-rl/sluice/sandboxd/internal/sandbox"
)

// selfTest is a program that tries what a sandbox must refuse, and prints what was
// refused. %d are the numbers of processes and of bytes in /tmp and /dev/shm.
const selfTest = `
import ctypes, errno, json, os, socket, threading
libc = ctypes.CDLL(None, use_errno=True)
processes, tmp, shm = %d, %d, %d
def refused(f):
    try:
        return f() is False
    except (OSError, RuntimeError):
        return True
def failed(call, *args):
    return call(*args) == 0 and "it worked" or False
held = {}
held["namespaces"] = all(refused(lambda: failed(libc.unshare, flag)) for flag in (0x10000000, 0x20000, 0x20000000))
held["mounts"] = refused(lambda: failed(libc.mount, b"tmpfs", b"/tmp", b"tmpfs", 0, b"size=1g"))
held["root"] = refused(lambda: open("/selftest", "w")) and os.getuid() != 0
held["network"] = [name for _, name in socket.if_nameindex()] in ([], ["lo"]) and refused(lambda: socket.create_connection(("192.0.2.1", 80), timeout=1))
def size(path):
    v = os.statvfs(path)
    return v.f_blocks * v.f_frsize
held["disk"] = size("/tmp") <= tmp + 8192 and size("/dev/shm") <= shm + 8192
stop = threading.Event()
def threads():
    for _ in range(processes + 1):
        threading.Thread(target=stop.wait, daemon=True).start()
held["processes"] = refused(threads)
stop.set()
print(json.dumps(held))
`

// memoryTest fills memory that belongs to no process.
const memoryTest = "import os\nf = os.memfd_create('x')\nwhile True: os.write(f, b'x' * (1 << 20))"

// memoryTestLimit is what it may fill; an interpreter and gVisor take 85 MiB of it.
const memoryTestLimit = 160 << 20

// selfTestTime bounds each of the two programs.
const selfTestTime = 20 * time.Second

// limited boots sandboxes with a memory limit of their own.
type limited interface {
	BootLimited(ctx context.Context, memory int64) (sandbox.Sandbox, error)
}

// testProtections tries the protections on this machine, so that nothing is claimed
// that does not hold here.
func (d *Daemon) testProtections(ctx context.Context, p api.Protections) (api.Protections, error) {
	maker, ok := d.made.(limited)
	if !ok {
		return p, nil
	}
	fails := func(what string) {
		p.Missing = append(p.Missing, what)
		d.log.Warn("protection does not hold on this machine", "which", what)
	}
	r, err := d.try(ctx, maker, int64(d.cfg.Memory), fmt.Sprintf(selfTest, d.cfg.Processes, d.cfg.TmpSize, d.cfg.ShmSize))
	if err != nil {
		return p, err
	}
	var held map[string]bool
	if r.Outcome != api.OK || json.Unmarshal(r.Stdout.Kept, &held) != nil {
		return p, fmt.Errorf("the program that tries the protections ended as %s: %s %s", r.Outcome, r.Message, r.Stderr.Text())
	}
	for _, c := range []struct {
		name, why string
		claim     *string
	}{
		{"namespaces", "namespaces: a program can make its own", nil},
		{"mounts", "mounts: a program can make its own, of any size", nil},
		{"root", "root: a program can write to its root file system", &p.Disk},
		{"network", "network: a program reaches more than its own loopback", &p.Network},
		{"disk", "disk: /tmp or /dev/shm is larger than asked for", &p.Disk},
		{"processes", "processes: a program can have more than asked for", &p.Processes},
	} {
		if held[c.name] {
			continue
		}
		fails(c.why)
		if c.claim != nil {
			*c.claim = ""
		}
	}
	if r, err = d.try(ctx, maker, memoryTestLimit, memoryTest); err != nil {
		return p, err
	}
	if r.Outcome != api.OutOfMemory {
		p.Memory = ""
		fails(fmt.Sprintf("memory: unbounded; a program that filled %d MiB more than it may ended as %s", memoryTestLimit>>20, r.Outcome))
	}
	p.Tested = true
	return p, nil
}

func (d *Daemon) try(ctx context.Context, maker limited, memory int64, code string) (api.Result, error) {
	box, err := maker.BootLimited(ctx, memory)
	if err != nil {
		return api.Result{}, err
	}
	r, err := box.Run(ctx, code, selfTestTime)
	if destroyed := box.Destroy(); err == nil && destroyed != nil {
		d.log.Warn("sandbox left traces", "sandbox", box.ID(), "err", destroyed)
	}
	return r, err
}
