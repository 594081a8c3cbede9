package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	chschema "github.com/sluice-rl/sluice/schemas/clickhouse"
	"github.com/sluice-rl/sluice/topology"
	"github.com/sluice-rl/sluice/topology/process"
)

// target says which ClickHouse, and as whom.
type target struct {
	addrs    []string
	protocol string
	database string
	user     string
	password string
	tls      bool
}

func (t *target) register(flags *process.Flags) {
	f := flags.Group("ClickHouse")
	f.StringSliceVar(&t.addrs, "clickhouse-addr", []string{"127.0.0.1:9000"}, "ClickHouse: host:port, separated by commas; further ones are tried when the first is away")
	f.StringVar(&t.protocol, "clickhouse-protocol", "native", "native or http; the port must be that protocol's (usually 9000 or 8123)")
	f.StringVar(&t.database, "clickhouse-database", "sluice", "database for the tables and views; made if missing; use one for each namespace")
	f.StringVar(&t.user, "clickhouse-user", "default", "user that may create the database and insert")
	process.Secret(f, &t.password, "clickhouse-password", "ClickHouse's password")
	f.BoolVar(&t.tls, "clickhouse-tls", false, "connect with TLS, checked against the system's certificates")
}

func (t *target) validate() error {
	if len(t.addrs) == 0 {
		return errors.New("--clickhouse-addr is empty: want host:port")
	}
	for _, a := range t.addrs {
		if host, port, err := net.SplitHostPort(a); err != nil || host == "" || port == "" {
			return fmt.Errorf("--clickhouse-addr: %q: want host:port", a)
		}
	}
	if t.protocol != "native" && t.protocol != "http" {
		return fmt.Errorf("--clickhouse-protocol: %q: want native or http", t.protocol)
	}
	if err := chschema.CheckDatabase(t.database); err != nil {
		return fmt.Errorf("--clickhouse-database: %w", err)
	}
	if t.user == "" {
		return errors.New("--clickhouse-user is empty")
	}
	return nil
}

func (t *target) options() *clickhouse.Options {
	o := &clickhouse.Options{
		Protocol: clickhouse.Native, Addr: t.addrs,
		Auth:         clickhouse.Auth{Database: t.database, Username: t.user, Password: t.password},
		DialTimeout:  5 * time.Second,
		ReadTimeout:  2 * time.Minute,
		MaxOpenConns: inserts + 1, MaxIdleConns: inserts + 1,
		Compression: &clickhouse.Compression{Method: clickhouse.CompressionLZ4},
		ClientInfo:  clickhouse.ClientInfo{Products: []struct{ Name, Version string }{{Name: "sluice-metrics-writer"}}},
	}
	if t.protocol == "http" {
		o.Protocol = clickhouse.HTTP
	}
	if t.tls {
		o.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return o
}

// config is what the flags set.
type config struct {
	target
	records  int
	bytes    int
	interval time.Duration
	migrate  bool
	// replay names the replay whose topics are read; empty: the original's.
	replay string
}

func (c *config) register(flags *process.Flags) {
	c.target.register(flags)
	f := flags.Group("Batches of rows")
	f.IntVar(&c.records, "batch-records", 1000, "most records of one partition in one insert")
	f.IntVar(&c.bytes, "batch-bytes", 16<<20, "most bytes of records in one insert; one larger record makes an insert of its own")
	f.DurationVar(&c.interval, "batch-interval", time.Second, "longest time a record waits for others")
	f.StringVar(&c.replay, "replay-id", "", "write this replay (of sluice replay --id) into the tables of replays: reads its topics, replay-ID. behind --namespace")
	f.BoolVar(&c.migrate, "migrate", true, "bring tables and views up to date at start; else run 'metrics-writer migrate' before")
}

func (c *config) validate() error {
	if err := c.target.validate(); err != nil {
		return err
	}
	if c.replay != "" {
		if err := topology.CheckReplayID(c.replay); err != nil {
			return fmt.Errorf("--replay-id: %w", err)
		}
	}
	if c.records < 1 {
		return fmt.Errorf("--batch-records is %d, want at least 1", c.records)
	}
	if c.bytes < 1 {
		return fmt.Errorf("--batch-bytes is %d, want at least 1", c.bytes)
	}
	if c.interval <= 0 {
		return fmt.Errorf("--batch-interval is %v, want above 0", c.interval)
	}
	return nil
}
