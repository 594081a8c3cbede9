package command

import (
	"context"
	"fmt"
	"os"
	"syscall"

	"github.com/sluice-rl/sluice/topology/process"
	"github.com/sluice-rl/sluice/topology/sluice/up"
)

func prepareCommand() process.Command {
	return passOn(process.Command{Name: "prepare", Short: "Make a problem file from published or plain data"}, "prompt-feeder", "prepare")
}

func replayCommand() process.Command {
	return passOn(process.Command{Name: "replay", Short: "Run what was recorded through another reward"}, "replayer")
}

// passOn makes a command of another program, which takes this process's place: what
// follows the name is the other's to read, --help too, and signals and the exit code are
// its own.
func passOn(c process.Command, binary string, args ...string) process.Command {
	c.PassesOn = true
	c.Run = func(_ context.Context, l *process.Life) error {
		path, err := up.Beside(binary)
		if err != nil {
			return err
		}
		argv := append(append([]string{binary}, args...), l.Args...)
		if err := syscall.Exec(path, argv, os.Environ()); err != nil {
			return fmt.Errorf("run %s: %w", path, err)
		}
		return nil
	}
	return c
}
