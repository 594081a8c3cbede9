package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/sluice-rl/sluice/stages/prompt-feeder/dataset"
	"github.com/sluice-rl/sluice/topology/process"
)

const prepareAbout = `prepare reads a problem set and writes train.jsonl and dev.jsonl.

Reads parquet or JSONL in DAPO/verl's layout (prompt, reward_model.ground_truth,
extra_info.index), GSM8K's (question, answer with "#### reference") or plain
{question, answer}. Rows that cannot be used are refused with number and reason,
and counted. order.csv says which input row each line was; manifest.json has the
counts, the refusals and a SHA-256 of each file.

With the same seed the split is that of Python's random.Random(seed).shuffle:
the first --dev rows of the shuffled list, and the rest.`

// prepareCommand is `prompt-feeder prepare`.
func prepareCommand() process.Command {
	var c dataset.PrepareConfig
	return process.Command{
		Name: "prepare", Short: "Make a problem file from DAPO, GSM8K or plain data", About: prepareAbout,
		Flags: func(flags *process.Flags) {
			f := flags.Group("Problems")
			f.StringVar(&c.Input, "input", "", "problem set, .parquet or JSONL (required)")
			f.StringVar(&c.OutDir, "out", "", "folder to write into (required)")
			f.Uint64Var(&c.Seed, "seed", 42, "seed of the shuffle")
			f.IntVar(&c.Dev, "dev", 50, "rows kept apart as dev.jsonl, below the number of usable rows")
			f.StringVar(&c.DataSource, "data-source", "", "data_source of rows that name none (default: by layout)")
		},
		Check: func() error {
			if c.Input == "" || c.OutDir == "" {
				return errors.New("want --input FILE and --out DIR")
			}
			return nil
		},
		Run: func(_ context.Context, l *process.Life) error { return prepare(c, l.Stdout, l.Stderr) },
	}
}

func prepare(c dataset.PrepareConfig, stdout, stderr io.Writer) error {
	m, err := dataset.Prepare(c, nil)
	for _, r := range m.Refusals {
		fmt.Fprintf(stderr, "row %d refused: %s: %s\n", r.Row, r.Reason, r.Detail)
	}
	if err != nil {
		return process.Usage(err)
	}
	fmt.Fprintf(stdout, "%d rows: %d train, %d dev in %s\n", m.Rows, m.Train, m.Dev, c.OutDir)
	for _, reason := range slices.Sorted(maps.Keys(m.Refused)) {
		fmt.Fprintf(stdout, "refused %d: %s\n", m.Refused[reason], reason)
	}
	if m.DuplicateIDs > 0 {
		fmt.Fprintf(stdout, "%d rows repeat the id of an earlier one\n", m.DuplicateIDs)
	}
	return nil
}
