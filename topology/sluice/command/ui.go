package command

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/sluice-rl/sluice/topology/cluster"
	"github.com/sluice-rl/sluice/topology/process"
	"github.com/sluice-rl/sluice/topology/sluice/supervise"
	"github.com/sluice-rl/sluice/topology/sluice/ui"
	"github.com/sluice-rl/sluice/topology/sluice/ui/ask"
	"github.com/sluice-rl/sluice/topology/sluice/ui/live"
	"github.com/sluice-rl/sluice/topology/sluice/up"
	"github.com/sluice-rl/sluice/topology/sluice/words"
)

const uiAbout = `Serve the pages: runs and their curves, trajectories turn by turn, groups, questions,
errors, dead letters, replays, and SQL. They read ClickHouse, and Kafka where --brokers
names it, and write nothing. A run of sluice up has pages at the address in its first
line; --dir serves those of one that has ended.

Pages are for this machine unless --listen says otherwise; beyond it they ask for the
token of --token-file or SLUICE_TOKEN, and a name that is not the address needs --host.

Statements that people write run only as a user that may do nothing else. The embedded
ClickHouse has one, "pages". Elsewhere make it so, as somebody who may:

  CREATE USER pages IDENTIFIED BY '…' SETTINGS readonly = 2, priority = 10,
    max_execution_time = 30 MIN 1 MAX 30, max_memory_usage = 2000000000 MIN 1 MAX 2000000000,
    max_threads = 2 MIN 1 MAX 2, max_result_rows = 1000000 MIN 1 MAX 1000000;
  GRANT SELECT ON sluice.* TO pages;`

// uiSettings are the flags of sluice ui.
type uiSettings struct {
	dir, library string

	listen string
	hosts  []string
	token  string

	addr, protocol, database, user, password string
	tls                                      bool

	kafka               cluster.Config
	inferenceURL, model string
}

func (u *uiSettings) register(flags *process.Flags) {
	f := flags.Group("Pages")
	f.StringVar(&u.listen, "listen", "127.0.0.1:8420", "where the pages are served, host:port; port 0 takes a free one")
	f.StringSliceVar(&u.hosts, "host", nil, "further names that the pages are opened under, comma between them")
	process.Secret(f, &u.token, "token", "the token that whoever opens the pages must know; needed beyond this machine")
	f.StringVar(&u.dir, "dir", "", "directory of a run of sluice up that has ended: its broker and ClickHouse are started for the pages, instead of those that flags name")
	f.StringVar(&u.library, "libchdb", "", "libchdb.so for the ClickHouse of --dir (default: what 'make tools' installed)")
	f.StringVar(&u.inferenceURL, "inference-url", "", "inference server that is asked for the text of token ids; without one pages show the ids")
	f.StringVar(&u.model, "model", "", "model name at --inference-url")

	f = flags.Group("ClickHouse")
	f.StringVar(&u.addr, "clickhouse-addr", "127.0.0.1:8123", "ClickHouse: host:port of --clickhouse-protocol")
	f.StringVar(&u.protocol, "clickhouse-protocol", "http", "http or native")
	f.StringVar(&u.database, "clickhouse-database", "sluice", "database of the tables and views")
	f.StringVar(&u.user, "clickhouse-user", "pages", "user that may read the database, and no more")
	process.Secret(f, &u.password, "clickhouse-password", "that user's password")
	f.BoolVar(&u.tls, "clickhouse-tls", false, "connect with TLS, checked against the system's certificates")

	u.kafka.RegisterOptional(flags.Group("Kafka"), "nothing live is shown")
}

func (u *uiSettings) check() error {
	if _, _, err := net.SplitHostPort(u.listen); err != nil {
		return fmt.Errorf("--listen %q: want host:port", u.listen)
	}
	if _, _, err := net.SplitHostPort(u.addr); err != nil {
		return fmt.Errorf("--clickhouse-addr %q: want host:port", u.addr)
	}
	if u.protocol != "native" && u.protocol != "http" {
		return fmt.Errorf("--clickhouse-protocol: %q: want http or native", u.protocol)
	}
	if u.inferenceURL != "" {
		if at, err := url.Parse(u.inferenceURL); err != nil || at.Host == "" {
			return fmt.Errorf("--inference-url %q: want http://host:port", u.inferenceURL)
		}
	}
	if u.dir != "" && len(u.kafka.Brokers) > 0 {
		return errors.New("--dir and --brokers: the directory has a broker of its own: give one of them")
	}
	return u.kafka.CheckOptional()
}

func uiCommand() process.Command {
	var u uiSettings
	return process.Command{
		Name: "ui", Short: "Serve the pages of runs and trajectories", About: uiAbout, Serves: true, LogLevel: "info",
		Exits: []process.Exit{{Err: ui.ErrToken, Code: process.ExitUsage}},
		Flags: u.register, Check: u.check,
		Run: func(ctx context.Context, l *process.Life) error { return serveUI(ctx, u, l) },
	}
}

func serveUI(ctx context.Context, u uiSettings, l *process.Life) error {
	listener, err := net.Listen("tcp", u.listen)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("--listen: %w", err) // another start may find it free
	case err != nil:
		return process.Usage(fmt.Errorf("--listen: %w", err))
	}
	defer listener.Close()
	if u.dir != "" {
		recorded, err := up.Reopen(ctx, u.dir, u.library, l.LogFlags, l.Stderr)
		if err != nil {
			return err
		}
		defer recorded.Close()
		if err := u.of(recorded); err != nil {
			return err
		}
		var cancel context.CancelCauseFunc
		ctx, cancel = context.WithCancelCause(ctx)
		defer cancel(nil)
		go func() {
			select {
			case err := <-recorded.Failed():
				cancel(err)
			case <-ctx.Done():
			}
		}()
	}
	options := &clickhouse.Options{
		Protocol: clickhouse.Native, Addr: []string{u.addr},
		Auth: clickhouse.Auth{Database: u.database, Username: u.user, Password: u.password},
	}
	if u.protocol == "http" {
		options.Protocol = clickhouse.HTTP
	}
	if u.tls {
		options.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	cfg := ui.Config{Listener: listener, Hosts: u.hosts, Token: u.token, Version: process.Version(), Log: l.Log}
	if cfg.Ask, err = ask.New(options); err != nil {
		return process.Usage(err)
	}
	defer func() { _ = cfg.Ask.Close() }()
	if len(u.kafka.Brokers) > 0 {
		t, err := u.kafka.Load()
		if err != nil {
			return process.Usage(err)
		}
		if cfg.Live, err = live.New(live.Config{Connect: u.kafka.Options(), Namespace: u.kafka.Namespace, Topology: t}); err != nil {
			return process.Usage(err)
		}
		defer cfg.Live.Close()
	}
	if u.inferenceURL != "" {
		cfg.Words = words.At(u.inferenceURL, u.model)
	}
	l.Address("pages", "http://"+listener.Addr().String())
	fmt.Fprintf(l.Stdout, "pages at http://%s\n", listener.Addr())
	go watchClickHouse(ctx, cfg.Ask, l)
	l.Health.Begun()
	err = ui.Serve(ctx, cfg)
	if cause := context.Cause(ctx); errors.Is(cause, supervise.ErrChild) {
		return cause
	}
	return err
}

// of takes the addresses of a run's directory.
func (u *uiSettings) of(r *up.Recorded) error {
	password, err := os.ReadFile(r.PasswordFile)
	if err != nil {
		return fmt.Errorf("password of the pages: %w", err)
	}
	u.addr, u.protocol, u.tls, u.database, u.user, u.password = r.ClickHouse, "http", false, r.Database, r.User, strings.TrimSpace(string(password))
	u.kafka.Brokers, u.kafka.Namespace = r.Brokers, r.Namespace
	return nil
}

// watchClickHouse has readiness say whether ClickHouse answers.
func watchClickHouse(ctx context.Context, a *ask.Asker, l *process.Life) {
	for {
		look, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := a.Ping(look)
		cancel()
		if ctx.Err() != nil {
			return
		}
		l.Health.Ready("clickhouse", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(15 * time.Second):
		}
	}
}
