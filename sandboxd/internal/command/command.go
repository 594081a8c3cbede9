// Package command is the sandboxd command line: the daemon, and `sandboxd run`
// for a person with one program.
package command

import (
	"github.com/sluice-rl/sluice/sandboxd/internal/daemon"
	"github.com/sluice-rl/sluice/topology/process"
)

// Program is sandboxd.
func Program() process.Command { return daemon.Program(runCommand()) }
