package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/pflag"

	"github.com/sluice-rl/sluice/stages/internal/stage"
	"github.com/sluice-rl/sluice/stages/prompt-feeder/dataset"
)

const prepareHelp = `prepare reads a problem set and writes train.jsonl and dev.jsonl.

Reads parquet or JSONL in DAPO/verl's layout (prompt, reward_model.ground_truth,
extra_info.index), GSM8K's (question, answer with "#### reference") or plain
{question, answer}. Rows that cannot be used are refused with number and reason,
and counted. order.csv says which input row each line was; manifest.json has the
counts, the refusals and a SHA-256 of each file.

With the same seed the split is that of Python's random.Random(seed).shuffle:
the first --dev rows of the shuffled list, and the rest.

Usage: prompt-feeder prepare --input FILE --out DIR [flags]
`

// prepare is the command of that name.
func prepare(_ context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) error {
	var c dataset.PrepareConfig
	f := pflag.NewFlagSet("prompt-feeder prepare", pflag.ContinueOnError)
	f.SetOutput(stderr)
	f.Usage = func() { fmt.Fprintf(stdout, "%s\n%s", prepareHelp, f.FlagUsages()) }
	f.StringVar(&c.Input, "input", "", "problem set, .parquet or JSONL (required)")
	f.StringVar(&c.OutDir, "out", "", "folder to write into (required)")
	f.Uint64Var(&c.Seed, "seed", 42, "seed of the shuffle")
	f.IntVar(&c.Dev, "dev", 50, "rows kept apart as dev.jsonl, below the number of usable rows")
	f.StringVar(&c.DataSource, "data-source", "", "data_source of rows that name none (default: by layout)")
	if err := f.Parse(args); errors.Is(err, pflag.ErrHelp) {
		return nil
	} else if err != nil {
		return stage.Usage(err)
	}
	if c.Input == "" || c.OutDir == "" || f.NArg() > 0 {
		return stage.Usage(errors.New("want --input FILE and --out DIR, and nothing else"))
	}
	m, err := dataset.Prepare(c, nil)
	for _, r := range m.Refusals {
		fmt.Fprintf(stderr, "row %d refused: %s: %s\n", r.Row, r.Reason, r.Detail)
	}
	if err != nil {
		return stage.Usage(err)
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
