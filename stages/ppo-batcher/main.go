// Command ppo-batcher packs the members of a step's groups into micro-batches for a
// trainer.
package main

import (
	"os"

	"github.com/sluice-rl/sluice/stages/internal/stage"
)

func main() { os.Exit(stage.Main(spec())) }
