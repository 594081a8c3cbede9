package stage

import (
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
)

const exitCodesText = `Exit codes:
  0  stopped cleanly, or finished
  1  failed
  2  flags, environment or configuration are wrong
  3  a dependency answered and cannot be used (wrong version, refused)
  4  a second signal stopped it before the work in flight was done
  5  fenced: another process runs with the same --instance-id
`

func help(s Spec, fs *pflag.FlagSet) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nUsage:\n  %s [flags]\n", strings.TrimSpace(s.About), s.Name)
	for _, name := range commandNames(s) {
		fmt.Fprintf(&b, "  %s %s [flags]    (%s %s --help)\n", s.Name, name, s.Name, name)
	}
	fmt.Fprintf(&b, "\nFlags:\n%s", fs.FlagUsagesWrapped(100))
	fmt.Fprintf(&b, "\nEvery flag is also an environment variable (--ready-file: %s) and a key of the\n", EnvName("ready-file"))
	b.WriteString("--config file (ready-file: …). A flag wins over the environment, that over the file. Secrets\nare taken from files and the environment only.\n\n")
	b.WriteString("The first SIGINT or SIGTERM lets work in flight finish; the second stops at once.\n\n")
	b.WriteString(exitCodesText)
	return b.String()
}

func commandNames(s Spec) []string { return slices.Sorted(maps.Keys(s.Commands)) }

// buildVersion is what the Go tool stamped into the binary.
func buildVersion() string {
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

func buildInfo(stage string) prometheus.Collector {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "sluice_build_info", Help: "Always 1; the labels say what runs.",
		ConstLabels: prometheus.Labels{"stage": stage, "version": buildVersion()},
	})
	g.Set(1)
	return g
}
