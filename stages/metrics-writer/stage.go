package main

import (
	"context"
	"fmt"

	chschema "github.com/sluice-rl/sluice/schemas/clickhouse"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/internal/stage"
	"github.com/sluice-rl/sluice/stages/metrics-writer/rows"
	"github.com/sluice-rl/sluice/topology"
	"github.com/sluice-rl/sluice/topology/process"
)

const about = `metrics-writer puts what happened into ClickHouse: trajectories and their turns,
groups, batches, the trainer's reports, dead letters.

Reads scored, grouped, ppo-batches, trainer-reports, trainer-annotations, policy-updates and dead-letters;
writes ClickHouse tables, and dead letters of what does not decode. Every record's rows
are there once, whatever was killed. While ClickHouse is away it waits; one that refuses
the user, its password or its rights at start ends it (exit code 3), and one that does so
later is waited for.

With --replay-id it writes a replay instead, from the replay's topics into tables of
replays: the original's rows are not touched, and views compare the two.`

func spec(p *probe) stage.Spec {
	var c config
	return stage.Spec{
		Name:     "metrics-writer",
		About:    about,
		Flags:    c.register,
		Validate: c.validate,
		Commands: []process.Command{migrateCommand()},
		Run: func(ctx context.Context, env *stage.Env) error {
			return run(ctx, env, c, p)
		},
	}
}

// probe lets a test act between steps: at is told of the runner's, inserted of each
// table. Nil: nobody is told.
type probe struct {
	at       func(kafka.RangeStep, kafka.Range)
	inserted func(table string, r kafka.Range)
	// serial keeps inserts from running beside each other.
	serial bool
}

func run(ctx context.Context, env *stage.Env, c config, p *probe) error {
	if p == nil {
		p = &probe{}
	}
	s := newSink(c.target, env.Log, env.Health.Ready)
	defer s.Close()
	s.inserted, s.replay = p.inserted, c.replay
	if c.replay != "" {
		env.Kafka.Namespace = topology.ReplayNamespace(env.Kafka.Namespace, c.replay)
	}
	if p.serial {
		s.turns = make(chan struct{}, 1)
	}
	if err := s.prepare(ctx, c.migrate); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return process.Unusable(err)
	}
	return kafka.RunRanges(ctx, kafka.RangesConfig{
		Cluster: env.Kafka, Stage: "metrics-writer",
		MaxRecords: c.records, MaxBytes: c.bytes, Interval: c.interval, At: p.at,
	}, s)
}

// migrateCommand is `metrics-writer migrate`. It does not wait for a server.
func migrateCommand() process.Command {
	var t target
	return process.Command{
		Name: "migrate", Short: "Bring ClickHouse's tables and views up to date",
		About: "Brings ClickHouse's tables and views up to date. Safe to repeat, and beside others.",
		Flags: t.register, Check: func() error { return t.validate() },
		Run: func(ctx context.Context, l *process.Life) error {
			err := chschema.Migrate(ctx, t.options(), t.database, l.Log)
			if err != nil && chschema.Refused(err) {
				return process.Unusable(err)
			}
			if err == nil {
				fmt.Fprintf(l.Stdout, "database %s is up to date: %d tables\n", t.database, len(rows.Tables()))
			}
			return err
		},
	}
}
