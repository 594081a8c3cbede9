// Command sluice starts, inspects and repairs a Sluice system.
package main

import (
	"os"

	"github.com/sluice-rl/sluice/topology/process"
	"github.com/sluice-rl/sluice/topology/sluice/command"
)

func main() { os.Exit(process.Main(command.Program())) }
