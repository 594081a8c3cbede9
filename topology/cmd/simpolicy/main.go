// Command simpolicy is a stand-in for a GPU: an inference server and a trainer.
package main

import (
	"os"

	"github.com/sluice-rl/sluice/topology/embedded/simpolicy"
	"github.com/sluice-rl/sluice/topology/process"
)

func main() { os.Exit(process.Main(simpolicy.Program())) }
