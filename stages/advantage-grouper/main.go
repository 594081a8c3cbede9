// Command advantage-grouper gathers the scored trajectories of each problem into a
// group, closes it and gives its members their advantages.
package main

import (
	"os"

	"github.com/sluice-rl/sluice/stages/internal/stage"
)

func main() { os.Exit(stage.Main(spec())) }
