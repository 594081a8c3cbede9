package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/sluice-rl/sluice/topology"
)

// config is what the executor can be told; every field is a flag.
type config struct {
	address   string
	tokenFile string
	slots     int
	attempts  int
	lock      time.Duration
	patience  time.Duration
	intake    string
}

func (c *config) register(f *pflag.FlagSet) {
	f.StringVar(&c.address, "sandboxd", "/var/lib/sandboxd/sandboxd.sock", "where sandboxd listens: a socket's path, unix:///path, or http://host:port")
	f.StringVar(&c.tokenFile, "sandboxd-token-file", "", "file with the token for sandboxd over TCP")
	f.IntVar(&c.slots, "slots", 0, "programs run at once; 0: as many as sandboxd lets be reserved when the executor starts")
	f.IntVar(&c.attempts, "attempts", 3, "sandboxes that may fail under one program before its trajectory ends as infra_error")
	f.DurationVar(&c.patience, "patience", time.Minute, "how long a call in hand waits for a sandbox before it goes back to its topic, for any executor to take")
	f.StringVar(&c.intake, "intake", "", "how calls are taken: share, or classic (no share groups needed; a slow call holds up nobody, but one process takes whole partitions). Empty: as topology.yaml says, and classic where the brokers have no share groups")
	f.DurationVar(&c.lock, "lock", 30*time.Second, "how long the brokers keep a record for a slot that has gone silent")
}

func (c *config) validate() error {
	if c.address == "" {
		return errors.New("--sandboxd is empty: say where sandboxd listens")
	}
	if c.slots < 0 || c.attempts < 1 {
		return errors.New("--slots must not be below 0, --attempts not below 1")
	}
	if c.patience < time.Second {
		return errors.New("--patience must be at least 1s")
	}
	switch topology.Intake(c.intake) {
	case "", topology.IntakeShare, topology.IntakeClassic:
	default:
		return fmt.Errorf("--intake: %q: want share or classic", c.intake)
	}
	if c.lock < time.Second {
		return errors.New("--lock must be at least 1s: it is renewed three times as often")
	}
	return nil
}
