// Command simpolicy is a stand-in for a GPU: an inference server and a trainer.
package main

import (
	"os"

	"github.com/sluice-rl/sluice/topology/embedded/simpolicy"
)

func main() { os.Exit(simpolicy.Main(os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr)) }
