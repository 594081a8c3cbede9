package main

import (
	"os"

	"github.com/sluice-rl/sluice/topology/process"
)

func main() { os.Exit(process.Main(program())) }
