// Package command is the sandboxd command line: the daemon, and `sandboxd run`
// for a person with one program.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"

	"github.com/sluice-rl/sluice/sandboxd/internal/daemon"
)

// Main runs the command and returns the process's exit code.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "run" {
		code, err := run(ctx, args[1:], stdin, stdout, stderr)
		if err != nil && !errors.Is(err, pflag.ErrHelp) {
			fmt.Fprintln(stderr, "sandboxd run:", err)
		}
		return code
	}
	err := daemon.Serve(ctx, args, stdout)
	if err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintln(stderr, "sandboxd:", err)
	}
	return daemon.ExitCode(err)
}

// readProgram reads FILE, or stdin for "-".
func readProgram(path string, stdin io.Reader) (string, error) {
	if path == "-" {
		data, err := io.ReadAll(stdin)
		return string(data), err
	}
	data, err := os.ReadFile(path)
	return string(data), err
}
