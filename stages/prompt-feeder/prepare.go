package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-rl/sluice/stages/prompt-feeder/dataset"
	"github.com/sluice-rl/sluice/topology/process"
)

const prepareAbout = `prepare reads a problem set and writes train.jsonl and dev.jsonl.

Reads parquet, Arrow, JSONL and CSV with a header, the latter two also compressed with
gzip or zstd, and folders of Hugging Face datasets, saved by save_to_disk or as the hub
keeps them. Layouts are DAPO/verl's (prompt, reward_model.ground_truth, extra_info.index),
GSM8K's (question, answer with "#### reference"), plain {question or problem, answer} and
TRL's: prompt as text or messages with answer, ground_truth or solution, or messages with
the assistant's message for the answer. --question-field and --answer-field name others.
Rows that cannot be used are refused with number and reason, and counted. order.csv says
which input row each line was; manifest.json has the counts, the refusals and a SHA-256 of
each file.

With several --input the rows of all are used; with weights (--input a.jsonl=0.7 --input
b.csv=0.3) as many as stand in these shares without a row taken twice. Rows that name no
data_source then get the name of their input, which every event of the run carries.

The first --dev questions of the shuffled list are kept apart, and no row that repeats one
of them is in train.jsonl. Where no question stands twice, the split is that of Python's
random.Random(seed).shuffle: the first --dev rows of the shuffled list, and the rest.`

// prepareCommand is `prompt-feeder prepare`.
func prepareCommand() process.Command {
	c := dataset.PrepareConfig{Dev: dataset.DevAuto}
	return process.Command{
		Name: "prepare", Short: "Make a problem file from published or plain data", About: prepareAbout,
		Flags: func(flags *process.Flags) {
			f := flags.Group("Problems")
			f.Var(&inputFlag{to: &c.Inputs}, "input", "problem set, a file or folder, and its weight if several are mixed; comma between them, or repeated (required)")
			f.StringVar(&c.Split, "split", "train", "which split of a folder is read")
			f.StringVar(&c.Layout.Question, "question-field", "", "field of the question, text or messages; a dot leads into an object (default: by layout)")
			f.StringVar(&c.Layout.Answer, "answer-field", "", "field of the reference answer; a dot leads into an object (default: by layout)")
			f.StringVar(&c.OutDir, "out", "", "folder to write into (required)")
			f.BoolVar(&c.Replace, "replace", false, "write over files of another preparation in --out; without it they are refused")
			f.Uint64Var(&c.Seed, "seed", 42, "seed of the shuffle")
			f.Var(devFlag{&c.Dev}, "dev", "questions kept apart as dev.jsonl: a number below that of the questions, or auto: a tenth of them, at most 50")
			f.BoolVar(&c.Dedupe, "dedupe", false, "keep the first row of each question alone; white space, case and compatible forms do not make another")
			f.StringVar(&c.Layout.DataSource, "data-source", "", "data_source of rows that name none (default: by layout; of several inputs, by input)")
		},
		Check: func() error {
			if len(c.Inputs) == 0 || c.OutDir == "" {
				return errors.New("want --input FILE (or a folder) and --out DIR")
			}
			return nil
		},
		Run: func(_ context.Context, l *process.Life) error { return prepare(c, l.Stdout, l.Stderr) },
	}
}

func prepare(c dataset.PrepareConfig, stdout, stderr io.Writer) error {
	m, err := dataset.Prepare(c, nil)
	for _, r := range m.Refusals {
		where := fmt.Sprintf("row %d", r.Row)
		if r.File != "" {
			where = r.File + " " + where
		}
		fmt.Fprintf(stderr, "%s refused: %s: %s\n", where, r.Reason, r.Detail)
	}
	switch {
	case errors.Is(err, dataset.ErrInput), errors.Is(err, dataset.ErrUnreadable), errors.Is(err, dataset.ErrSplit), errors.Is(err, dataset.ErrOccupied):
		return process.Usage(err)
	case err != nil:
		return err
	}
	fmt.Fprintf(stdout, "%d rows: %d train, %d dev in %s\n", m.Rows, m.Train, m.Dev, c.OutDir)
	if len(m.Inputs) > 1 {
		for _, in := range m.Inputs {
			fmt.Fprintf(stdout, "%s: %d train, %d dev of %d usable rows, %d left out for the shares\n", in.Name, in.Train, in.Dev, in.Used, in.LeftOutOfMixture)
		}
	}
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
		{m.Notes["earlier_turns"], "rows had several messages of the user, of which the last is used"},
		{m.Notes["answer_of_assistant"], "rows have the assistant's message for their reference answer"},
		{m.Notes["further_answers"], "rows had further answers, of which the first is used"},
	} {
		if n.count > 0 {
			fmt.Fprintf(stdout, "%d %s\n", n.count, n.says)
		}
	}
	return nil
}

// inputFlag is a list of path or path=weight, with commas between or given repeatedly. A
// path that is there is taken as it stands.
type inputFlag struct {
	to   *[]dataset.Input
	text []string
}

func (*inputFlag) Type() string { return "path[=weight]" }

func (f *inputFlag) String() string { return strings.Join(f.text, " ") }

func (f *inputFlag) Set(text string) error {
	f.text = append(f.text, text)
	if _, err := os.Stat(text); err == nil {
		*f.to = append(*f.to, dataset.Input{Path: text})
		return nil
	}
	for part := range strings.SplitSeq(text, ",") {
		in, err := dataset.ParseInput(part)
		if err != nil {
			return err
		}
		*f.to = append(*f.to, in)
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
