// Package command is the sandboxd command line: the daemon, and `sandboxd run`
// for a person with one program.
package command

import (
	"io"
	"os"

	"github.com/sluice-rl/sluice/sandboxd/internal/daemon"
	"github.com/sluice-rl/sluice/topology/process"
)

// Program is sandboxd.
func Program() process.Command { return daemon.Program(runCommand()) }

// readProgram reads FILE, or stdin for "-".
func readProgram(path string, stdin io.Reader) (string, error) {
	if path == "-" {
		data, err := io.ReadAll(stdin)
		return string(data), err
	}
	data, err := os.ReadFile(path)
	return string(data), err
}
