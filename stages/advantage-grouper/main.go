package main

import (
	"os"

	"github.com/sluice-rl/sluice/stages/internal/stage"
)

func main() { os.Exit(stage.Main(spec())) }
