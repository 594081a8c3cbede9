package daemon

import (
	"github.com/sluice-rl/sluice/sandboxd/api"
	"github.com/sluice-rl/sluice/sandboxd/internal/host/cgroup"
)

// protect says what holds each limit on this machine, and what does not.
func protect(cfg *Config, groups *cgroup.Manager) api.Protections {
	p := api.Protections{
		Isolation: "gvisor", Platform: cfg.Platform,
		Processes: "RLIMIT_NPROC inside gVisor",
		Disk:      "read-only root; tmpfs size limits; number of files by the memory limit alone (about 2 KiB each)",
		Network:   "none but a private loopback",
		Output:    "counted by the daemon",
		WallTime:  "killed by the daemon",
		Missing:   []string{},
	}
	missing := func(what string) { p.Missing = append(p.Missing, what) }
	if groups.Has("memory") {
		p.Memory = string(groups.Version())
	} else {
		missing("memory: no memory control group; the daemon looks at what the sandbox holds every 10 ms and kills it when it is too much, so a burst may pass the limit for a moment")
		p.Memory = "watched by the daemon"
	}
	if groups.Has("cpu") {
		p.CPU = string(groups.Version()) + " quota, and wall time"
	} else {
		missing("cpu: no cpu control group; a program may use every core until its wall time is over")
		p.CPU = "wall time only"
	}
	if cfg.Isolation == Trajectory {
		p.Isolation = "gvisor, shared by the calls of one trajectory"
	}
	if cfg.Isolation == Process {
		if !groups.Has("memory") {
			p.Memory = ""
			missing("memory: unbounded")
		}
		p.Isolation, p.Platform, p.Network, p.Disk = "none", "", "", ""
		p.Processes = ""
		missing("isolation: programs run as plain processes of the daemon's user and can read and do whatever it can")
		missing("network: open")
		missing("disk: every file the daemon's user may write")
		missing("processes: unlimited")
	}
	return p
}
