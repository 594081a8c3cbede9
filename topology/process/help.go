package process

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

const settingsText = `A flag not given is taken from the environment (--log-level: SLUICE_LOG_LEVEL), else
from the --config file (log-level: …). Secrets are taken from files and the environment
only. The first SIGINT or SIGTERM lets work in flight finish; the second stops at once.
`

// help is the text of --help; path is the command's name and the names before it.
func help(c *Command, path string, flags *Flags) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nUsage:\n", strings.TrimSpace(c.About))
	if c.Run != nil {
		fmt.Fprintf(&b, "  %s\n", strings.Join(append(append([]string{path}, c.Args...), "[flags]"), " "))
	}
	if len(c.Commands) > 0 {
		fmt.Fprintf(&b, "  %s COMMAND [flags]\n\nCommands (%s COMMAND --help says more):\n", path, path)
		width := 0
		for _, sub := range c.Commands {
			width = max(width, len(sub.use()))
		}
		for _, sub := range c.Commands {
			fmt.Fprintf(&b, "  %-*s  %s\n", width, sub.use(), sub.Short)
		}
	}
	for _, g := range flags.groups {
		fmt.Fprintf(&b, "\n%s:\n%s", g.title, g.set.FlagUsagesWrapped(100))
	}
	fmt.Fprintf(&b, "\n%s\n%s", settingsText, exitCodesText)
	return b.String()
}

// Version is what the Go tool stamped into the binary.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	version := info.Main.Version
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			version += " " + setting.Value
		}
	}
	return version + " " + info.GoVersion
}

func buildInfo(program string) prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "sluice_build_info", Help: "Always 1; the labels say what runs.",
		ConstLabels: prometheus.Labels{"program": program, "version": Version()},
	})
	g.Set(1)
	return g
}
