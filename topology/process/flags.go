package process

import (
	"fmt"
	"log/slog"
	"net"
	"path/filepath"

	"github.com/spf13/pflag"
)

// Flags are a command's flags, in the groups that its help shows them in.
type Flags struct {
	groups []group
}

type group struct {
	title string
	set   *pflag.FlagSet
}

// Group returns the flags under a title, to add to.
func (f *Flags) Group(title string) *pflag.FlagSet {
	for _, g := range f.groups {
		if g.title == title {
			return g.set
		}
	}
	set := pflag.NewFlagSet(title, pflag.ContinueOnError)
	set.SortFlags = false
	f.groups = append(f.groups, group{title, set})
	return set
}

// Lookup finds a flag in any group, nil if there is none of the name.
func (f *Flags) Lookup(name string) *pflag.Flag { return f.all().Lookup(name) }

// Parse sets the flags from a command line, without environment and files: for tests of
// what they may hold.
func (f *Flags) Parse(args ...string) error { return f.all().Parse(args) }

// all are the flags of every group in one set.
func (f *Flags) all() *pflag.FlagSet {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	all.SortFlags = false
	for _, g := range f.groups {
		all.AddFlagSet(g.set)
	}
	return all
}

// common are the settings that every command has.
type common struct {
	file, level, format string
	httpAddr, readyFile string
	help, version       bool
}

func (c *common) register(f *pflag.FlagSet, cmd *Command) {
	if cmd.Serves && !cmd.OwnHealth {
		addr := cmd.HTTPAddr
		if addr == "" {
			addr = "127.0.0.1:0"
		}
		f.StringVar(&c.httpAddr, "http-addr", addr, "address for "+cmd.HTTPServes+"/healthz, /readyz and /metrics; port 0 takes a free one")
	}
	if cmd.Serves {
		f.StringVar(&c.readyFile, "ready-file", "", "file to write {\"pid\":…} and the addresses it listens on into once ready; removed at exit")
	}
	f.StringVar(&c.file, "config", "", "YAML file of these settings by the same names")
	f.StringVar(&c.level, "log-level", cmd.logLevel(), "least level to log: debug, info, warn or error")
	f.StringVar(&c.format, "log-format", "text", "text or json, on stderr")
	f.BoolVarP(&c.help, "help", "h", false, "print this and exit")
	f.BoolVar(&c.version, "version", false, "print the version and exit")
}

func (c *common) check(cmd *Command) error {
	if err := new(slog.Level).UnmarshalText([]byte(c.level)); err != nil {
		return fmt.Errorf("--log-level: %q: want debug, info, warn or error", c.level)
	}
	if c.format != "text" && c.format != "json" {
		return fmt.Errorf("--log-format: %q: want text or json", c.format)
	}
	if !cmd.Serves {
		return nil
	}
	if _, _, err := net.SplitHostPort(c.httpAddr); err != nil && !cmd.OwnHealth {
		return fmt.Errorf("--http-addr: %q: want host:port", c.httpAddr)
	}
	if c.readyFile != "" {
		// What waits for the file would wait for ever.
		if err := writable(filepath.Dir(c.readyFile)); err != nil {
			return fmt.Errorf("--ready-file: %w", err)
		}
	}
	return nil
}
