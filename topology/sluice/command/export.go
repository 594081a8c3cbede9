package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/schemas/archive"
	"github.com/sluice-rl/sluice/schemas/archive/topic"
	"github.com/sluice-rl/sluice/topology/sluice/export"
)

const exportAbout = `Copy recorded topics into an archive: a folder with one file per topic, Parquet or JSON
lines, out of retention's reach. Nothing is lost: sluice replay --archive DIR replays
from it what it would from the topics, and later versions read it. The folder appears
when it is whole; an interrupted export leaves nothing.

--offsets and --before are said of scored and trajectories; of the other topics
everything that may close what they hold is taken, from --since on.`

func exportCommand() *cobra.Command {
	var (
		where cluster
		cfg   export.Config
	)
	c := &cobra.Command{Use: "export", Short: "Copy recorded topics into an archive", Long: exportAbout, Args: noArgs}
	f := c.Flags()
	f.SortFlags = false
	where.register(f)
	f.StringVar(&cfg.Dir, "to", "", "folder to make")
	f.StringVar(&cfg.Format, "format", archive.Parquet, "parquet or jsonl")
	f.StringSliceVar(&cfg.Topics, "topics", export.DefaultTopics, "topics, comma between them")
	cfg.Select.Register(f)
	c.RunE = func(c *cobra.Command, _ []string) error {
		t, err := where.load()
		if err != nil {
			return err
		}
		if err := cfg.Select.Check(); err != nil {
			return fmt.Errorf("%w: %w", errUsage, err)
		}
		if cfg.Dir == "" {
			return fmt.Errorf("%w: --to is missing: name the folder to make", errUsage)
		}
		if cfg.Format != archive.Parquet && cfg.Format != archive.JSONL {
			return fmt.Errorf("%w: --format is %q, want parquet or jsonl", errUsage, cfg.Format)
		}
		for _, name := range cfg.Topics {
			if tp, ok := t.Topics[name]; !ok || len(tp.Records) == 0 {
				return fmt.Errorf("%w: --topics: %q is no topic of records", errUsage, name)
			}
		}
		opts := append(topic.Options(), kgo.SeedBrokers(where.brokers...), kgo.ClientID("sluice-export"))
		if cfg.Client, err = kgo.NewClient(opts...); err != nil {
			return fmt.Errorf("%w: --brokers: %w", errUsage, err)
		}
		defer cfg.Client.Close()
		cfg.Namespace = where.namespace
		cfg.Progress = func(p export.Progress) {
			if p.Read%10_000 == 0 || p.Read >= p.Total {
				fmt.Fprintf(c.ErrOrStderr(), "%s: %d of %d read, %d written\n", p.Topic, p.Read, p.Total, p.Written)
			}
		}
		ctx, stop := untilSignal()
		defer stop()
		all, err := export.Run(ctx, cfg)
		if ctx.Err() != nil {
			return fmt.Errorf("export: interrupted; nothing was left")
		}
		if err != nil {
			return fmt.Errorf("export: %w", err)
		}
		var parts []string
		for _, p := range all {
			parts = append(parts, fmt.Sprintf("%d of %s", p.Written, p.Topic))
		}
		fmt.Fprintf(c.OutOrStdout(), "%s: %s\n", cfg.Dir, strings.Join(parts, ", "))
		return nil
	}
	return c
}
