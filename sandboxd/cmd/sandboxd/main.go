// Command sandboxd runs untrusted Python under gVisor; see sandboxd --help.
package main

import (
	"context"
	"os"

	"github.com/sluice-rl/sluice/sandboxd/internal/command"
)

func main() {
	os.Exit(command.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
