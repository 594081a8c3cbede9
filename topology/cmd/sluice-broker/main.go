// Command sluice-broker is a Kafka broker for one machine.
package main

import (
	"os"

	"github.com/sluice-rl/sluice/topology/embedded/broker"
	"github.com/sluice-rl/sluice/topology/process"
)

func main() { os.Exit(process.Main(broker.Program())) }
