// Command sluice starts, inspects and repairs a Sluice system.
package main

import (
	"os"

	"github.com/sluice-rl/sluice/topology/sluice/command"
)

func main() { os.Exit(command.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
