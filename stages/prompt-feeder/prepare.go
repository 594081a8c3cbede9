package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/sluice-rl/sluice/stages/prompt-feeder/dataset"
	"github.com/sluice-rl/sluice/topology/process"
)

const prepareAbout = `prepare reads a problem set and writes train.jsonl and dev.jsonl.

Reads parquet or JSONL in DAPO/verl's layout (prompt, reward_model.ground_truth,
extra_info.index), GSM8K's (question, answer with "#### reference") or plain
{question, answer}. Rows that cannot be used are refused with number and reason,
and counted. order.csv says which input row each line was; manifest.json has the
counts, the refusals and a SHA-256 of each file.

The first --dev questions of the shuffled list are kept apart, and no row that repeats one
of them is in train.jsonl. Where no question stands twice, the split is that of Python's
random.Random(seed).shuffle: the first --dev rows of the shuffled list, and the rest.`

// prepareCommand is `prompt-feeder prepare`.
func prepareCommand() process.Command {
	c := dataset.PrepareConfig{Dev: dataset.DevAuto}
	return process.Command{
		Name: "prepare", Short: "Make a problem file from DAPO, GSM8K or plain data", About: prepareAbout,
		Flags: func(flags *process.Flags) {
			f := flags.Group("Problems")
			f.StringVar(&c.Input, "input", "", "problem set, .parquet or JSONL (required)")
			f.StringVar(&c.OutDir, "out", "", "folder to write into (required)")
			f.Uint64Var(&c.Seed, "seed", 42, "seed of the shuffle")
			f.Var(devFlag{&c.Dev}, "dev", "questions kept apart as dev.jsonl: a number below that of the questions, or auto: a tenth of them, at most 50")
			f.BoolVar(&c.Dedupe, "dedupe", false, "keep the first row of each question alone; white space, case and compatible forms do not make another")
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
	for _, n := range []struct {
		count int
		says  string
	}{
		{m.DuplicateIDs, "rows repeat the id of an earlier one"},
		{m.RepeatedQuestions, "rows repeat an earlier question (--dedupe leaves them out)"},
		{m.ConflictingAnswers, "of them with another answer"},
		{m.DevRepeatsLeftOut, "rows are in neither file: they repeat a question of dev"},
		{m.Notes["system_message"], "rows had a system message, which is not used"},
		{m.Notes["further_answers"], "rows had further answers, of which the first is used"},
	} {
		if n.count > 0 {
			fmt.Fprintf(stdout, "%d %s\n", n.count, n.says)
		}
	}
	return nil
}

// devFlag is a count or auto.
type devFlag struct{ to *int }

func (devFlag) Type() string { return "int|auto" }

func (f devFlag) String() string {
	if f.to == nil || *f.to == dataset.DevAuto {
		return "auto"
	}
	return strconv.Itoa(*f.to)
}

func (f devFlag) Set(text string) error {
	if text == "auto" {
		*f.to = dataset.DevAuto
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return errors.New("want a number from 0, or auto")
	}
	*f.to = n
	return nil
}
