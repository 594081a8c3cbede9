package main

import (
	"errors"
	"time"

	"github.com/spf13/pflag"
)

// config is what the executor can be told; every field is a flag.
type config struct {
	address   string
	tokenFile string
	slots     int
	attempts  int
	lock      time.Duration
}

func (c *config) register(f *pflag.FlagSet) {
	f.StringVar(&c.address, "sandboxd", "/var/lib/sandboxd/sandboxd.sock", "where sandboxd listens: a socket's path, unix:///path, or http://host:port")
	f.StringVar(&c.tokenFile, "sandboxd-token-file", "", "file with the token for sandboxd over TCP")
	f.IntVar(&c.slots, "slots", 0, "programs run at once; 0: as many as sandboxd lets be reserved when the executor starts")
	f.IntVar(&c.attempts, "attempts", 3, "sandboxes that may fail under one program before its trajectory ends as infra_error")
	f.DurationVar(&c.lock, "lock", 30*time.Second, "how long the brokers keep a record for a slot that has gone silent")
}

func (c *config) validate() error {
	if c.address == "" {
		return errors.New("--sandboxd is empty: say where sandboxd listens")
	}
	if c.slots < 0 || c.attempts < 1 {
		return errors.New("--slots must not be below 0, --attempts not below 1")
	}
	if c.lock < time.Second {
		return errors.New("--lock must be at least 1s: it is renewed three times as often")
	}
	return nil
}
