// Command sandboxd runs untrusted Python under gVisor; see sandboxd --help.
package main

import (
	"os"

	"github.com/sluice-rl/sluice/sandboxd/internal/command"
	"github.com/sluice-rl/sluice/topology/process"
)

func main() { os.Exit(process.Main(command.Program())) }
