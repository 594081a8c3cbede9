package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/schemas/archive"
	"github.com/sluice-rl/sluice/schemas/archive/topic"
	"github.com/sluice-rl/sluice/topology/cluster"
	"github.com/sluice-rl/sluice/topology/process"
	"github.com/sluice-rl/sluice/topology/sluice/export"
)

const exportAbout = `Copy recorded topics into an archive: a folder with one file per topic, Parquet or JSON
lines, out of retention's reach. Nothing is lost: sluice replay --archive DIR replays
from it what it would from the topics, and later versions read it. The folder appears
when it is whole; an interrupted export leaves nothing.

--offsets and --before are said of scored and trajectories; of the other topics
everything that may close what they hold is taken, from --since on.`

func exportCommand() process.Command {
	var (
		where cluster.Config
		cfg   export.Config
	)
	return process.Command{
		Name: "export", Short: "Copy recorded topics into an archive", About: exportAbout,
		Flags: func(flags *process.Flags) {
			f := flags.Group("Export")
			f.StringVar(&cfg.Dir, "to", "", "folder to make")
			f.StringVar(&cfg.Format, "format", archive.Parquet, "parquet or jsonl")
			f.StringSliceVar(&cfg.Topics, "topics", export.DefaultTopics, "topics, comma between them")
			cfg.Select.Register(f)
			where.Register(flags.Group("Kafka"))
		},
		Check: func() error { return checkExport(cfg, where) },
		Run: func(ctx context.Context, l *process.Life) (err error) {
			opts := append(append(topic.Options(), where.Options()...), kgo.ClientID("sluice-export"))
			if cfg.Client, err = kgo.NewClient(opts...); err != nil {
				return process.Usage(fmt.Errorf("--brokers: %w", err))
			}
			defer cfg.Client.Close()
			cfg.Namespace = where.Namespace
			cfg.Progress = func(p export.Progress) {
				if p.Read%10_000 == 0 || p.Read >= p.Total {
					fmt.Fprintf(l.Stderr, "%s: %d of %d read, %d written\n", p.Topic, p.Read, p.Total, p.Written)
				}
			}
			all, err := export.Run(ctx, cfg)
			if ctx.Err() != nil {
				return process.Stopped(errors.New("export: interrupted; nothing was left"))
			}
			if err != nil {
				return fmt.Errorf("export: %w", err)
			}
			var parts []string
			for _, p := range all {
				parts = append(parts, fmt.Sprintf("%d of %s", p.Written, p.Topic))
			}
			fmt.Fprintf(l.Stdout, "%s: %s\n", cfg.Dir, strings.Join(parts, ", "))
			return nil
		},
	}
}

func checkExport(cfg export.Config, where cluster.Config) error {
	if err := cfg.Select.Check(); err != nil {
		return err
	}
	if cfg.Dir == "" {
		return errors.New("--to is missing: name the folder to make")
	}
	if cfg.Format != archive.Parquet && cfg.Format != archive.JSONL {
		return fmt.Errorf("--format is %q, want parquet or jsonl", cfg.Format)
	}
	if err := where.Check(); err != nil {
		return err
	}
	t, err := where.Load()
	if err != nil {
		return err
	}
	for _, name := range cfg.Topics {
		if tp, ok := t.Topics[name]; !ok || len(tp.Records) == 0 {
			return fmt.Errorf("--topics: %q is no topic of records", name)
		}
	}
	return nil
}
