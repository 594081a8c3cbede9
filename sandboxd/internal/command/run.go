package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/sluice-rl/sluice/sandboxd/api"
	"github.com/sluice-rl/sluice/sandboxd/client"
	"github.com/sluice-rl/sluice/sandboxd/internal/daemon"
	"github.com/sluice-rl/sluice/topology/process"
)

const aboutRun = `Runs one Python program in a gVisor sandbox, by the daemon at --socket if one
is there, else by one started for this call alone. FILE.py may be - for stdin.

The file is read as Python reads it: as UTF-8, or as its encoding declaration says.

Without --json, the program's stdout and stderr are passed on (control
characters made visible on a terminal) and the exit code is the program's; 124
after the time limit, 125 if the sandbox failed, 137 after another limit. With
--json, one object is printed and the exit code is 0 whatever the program did,
125 if the sandbox failed.`

// Exit codes of the command itself, apart from the program's own.
const (
	exitTimeout = 124
	exitInfra   = 125
	exitLimit   = 137
)

// runFlags are the flags of `sandboxd run` beside the daemon's.
type runFlags struct {
	daemon       *daemon.Config
	timeout      secondsValue
	asJSON, cold bool
}

func (r *runFlags) register(flags *process.Flags) {
	f := flags.Group("Run")
	f.BoolVar(&r.asJSON, "json", false, "print one JSON object instead of the program's output")
	f.BoolVar(&r.cold, "cold", false, "boot a sandbox instead of taking a warm one")
	r.daemon = daemon.Flags(flags)
	// A person says seconds; the daemon's flag of this name takes durations.
	timeout := flags.Lookup("timeout")
	timeout.Value, timeout.DefValue = &r.timeout, ""
	timeout.Usage = "run time allowed, in seconds or as a duration like 1m30s (default: the daemon's)"
}

func runCommand() process.Command {
	r := &runFlags{}
	return process.Command{
		Name: "run", Args: []string{"FILE.py"}, Short: "Run one program", About: aboutRun,
		Flags: r.register, Check: func() error { return r.daemon.Complete() },
		Run: r.run,
	}
}

func (r *runFlags) run(ctx context.Context, l *process.Life) error {
	code, err := readProgram(l.Args[0], l.Stdin)
	if err != nil {
		return process.Usage(err)
	}
	req := api.Request{Code: code, TimeoutMS: time.Duration(r.timeout).Milliseconds(), Cold: r.cold}
	result, err := call(ctx, r.daemon, req, l.Log)
	if err != nil {
		fmt.Fprintln(l.Stderr, "sandboxd run:", err)
		return process.Status(exitInfra)
	}
	if r.asJSON {
		if err := json.NewEncoder(l.Stdout).Encode(result); err != nil {
			return err
		}
		if result.Outcome == api.InfraError {
			return process.Status(exitInfra)
		}
		return nil
	}
	show(result, l.Stdout, l.Stderr)
	if code := exitFor(result); code != 0 {
		return process.Status(code)
	}
	return nil
}

// call asks the running daemon, or does the daemon's work itself if there is none.
func call(ctx context.Context, cfg *daemon.Config, req api.Request, log *slog.Logger) (api.Result, error) {
	c, err := client.New(client.Config{Address: "unix://" + cfg.Socket})
	if err != nil {
		return api.Result{}, err
	}
	defer c.Close()
	for {
		result, err := c.Run(ctx, req)
		var busy *client.BusyError
		switch {
		case errors.As(err, &busy):
			select {
			case <-time.After(busy.RetryAfter):
				continue
			case <-ctx.Done():
				return api.Result{}, ctx.Err()
			}
		case absent(err):
			return once(ctx, cfg, req, log)
		}
		return result, err
	}
}

// absent says that nobody listens on the socket.
func absent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED))
}

// once starts a daemon without listeners or a pool in a folder of its own, runs
// the program and takes everything away again. Only the built root file system
// is shared with other runs.
func once(ctx context.Context, cfg *daemon.Config, req api.Request, log *slog.Logger) (result api.Result, err error) {
	if err := os.MkdirAll(cfg.StateDir, 0o700); err != nil {
		return api.Result{}, err
	}
	dir, err := os.MkdirTemp(cfg.StateDir, "once-")
	if err != nil {
		return api.Result{}, err
	}
	defer os.RemoveAll(dir)
	cfg.StateDir, cfg.Pool = dir, nil
	cfg.Socket = filepath.Join(dir, "unused.sock")
	d, err := daemon.New(ctx, cfg, log)
	if err != nil {
		return api.Result{}, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return d.Service().Run(ctx, req)
}

// show passes the program's output on. A program must not be able to drive the
// terminal of the person who runs it.
func show(r api.Result, stdout, stderr io.Writer) {
	pass(stdout, r.Stdout)
	pass(stderr, r.Stderr)
	if r.Outcome != api.OK && r.Outcome != api.Error {
		fmt.Fprintf(stderr, "sandboxd run: %s: %s\n", r.Outcome, visible(r.Message))
	}
}

func pass(w io.Writer, s api.Stream) {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		_, _ = io.WriteString(w, visible(s.Text()))
		return
	}
	_, _ = w.Write(s.Kept)
}

// visible escapes control characters other than newline and tab.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < 0x20:
			return 0x2400 + r // the pictures of control characters
		case r >= 0x7f && r < 0xa0:
			return '\uFFFD'
		}
		return r
	}, s)
}

func exitFor(r api.Result) int {
	switch r.Outcome {
	case api.OK, api.Error, api.Killed:
		return r.ExitCode
	case api.Timeout:
		return exitTimeout
	case api.InfraError:
		return exitInfra
	}
	return exitLimit
}

// secondsValue is a duration that may be written as plain seconds.
type secondsValue time.Duration

func (s *secondsValue) String() string {
	if *s == 0 {
		return ""
	}
	return time.Duration(*s).String()
}

func (s *secondsValue) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		d, err = time.ParseDuration(text + "s")
	}
	if err != nil || d <= 0 {
		return fmt.Errorf("timeout %q: want seconds or a duration, more than 0", text)
	}
	*s = secondsValue(d)
	return nil
}

func (s *secondsValue) Type() string { return "seconds" }
