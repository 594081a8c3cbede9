// Command sluice-broker is a Kafka broker for one machine.
package main

import (
	"os"

	"github.com/sluice-rl/sluice/topology/embedded/broker"
)

func main() { os.Exit(broker.Main(os.Args[1:], os.Stdout, os.Stderr)) }
