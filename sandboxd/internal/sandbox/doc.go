// Package sandbox is one sandbox from its start to its removal: a process that
// reports ready, takes one program, and is then thrown away.
//
// Reads: the process's stdout and stderr, its control group, the runtime's log.
// Writes: the program to its stdin. Promises: one program at most; Run returns
// when the program has ended or a limit is reached; Destroy leaves no process,
// no control group and no file behind, whatever the program did.
package sandbox

import (
	"context"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/api"
)

// Sandbox is one single-use sandbox, as those see it who keep it and use it.
type Sandbox interface {
	ID() string
	// Image names what it was made from.
	Image() string
	// Warm says that it was restored from a checkpoint.
	Warm() bool
	// Started says whether it took the program.
	Started() bool
	// Run gives it its one program and returns how it went.
	Run(ctx context.Context, code string, limit time.Duration) (api.Result, error)
	// Exited is closed when the sandbox has died.
	Exited() <-chan struct{}
	// Destroy kills it and removes its traces. It may be called twice.
	Destroy() error
}
