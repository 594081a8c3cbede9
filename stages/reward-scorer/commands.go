package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/spf13/pflag"

	"github.com/sluice-rl/sluice/stages/internal/stage"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify"
	"github.com/sluice-rl/sluice/stages/reward-scorer/reward"
	"github.com/sluice-rl/sluice/stages/reward-scorer/reward/rewardfile"
	"github.com/sluice-rl/sluice/stages/reward-scorer/rewardio"
)

const rewardUsage = "YAML file that names the rewards and which of them decides; without it the reward is 'outcome', +1 or -1"

func loadRewards(path string) (*reward.Set, error) {
	return rewardfile.Load(path, rewardfile.Deps{Transport: http.DefaultTransport, ReadFile: os.ReadFile})
}

var (
	// errLines: some lines were answered with an error in their place.
	errLines = errors.New("lines that could not be read")
	// errReward: no response got a reward, because the one that decides failed.
	errReward = errors.New("the reward failed on every response")
)

// check is `reward-scorer check`.
func check(_ context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	f := pflag.NewFlagSet("reward-scorer check", pflag.ContinueOnError)
	profile := f.String("profile", string(mathverify.Sound), "conventions of comparison: sound, or compat for those of Math-Verify")
	if done, err := parse(f, args, `Compares answers: reads lines {"id","gold","pred"} from standard input and writes, in order,
lines {"id","verdict","method","reason","gold_read","pred_read","micros"}.

Exit status: 0; 1 if a line could not be read (it is answered with {"id","error"} in its
place) or reading or writing failed; 2 if the flags are wrong.`, stdout); done || err != nil {
		return err
	}
	if err := (mathverify.Options{Profile: mathverify.Profile(*profile)}).Validate(); err != nil {
		return stage.Usage(err)
	}
	sum, err := rewardio.Check(stdin, stdout, mathverify.Profile(*profile))
	if err != nil {
		return err
	}
	fmt.Fprintf(stderr, "%d pairs: %d equal, %d different, %d undecided\n", sum.Lines-sum.Bad, sum.Equal, sum.Different, sum.Undecided)
	return bad(sum)
}

// score is `reward-scorer score`.
func score(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	f := pflag.NewFlagSet("reward-scorer score", pflag.ContinueOnError)
	file := f.String("reward", "", rewardUsage)
	if done, err := parse(f, args, `Scores responses: reads lines {"id","text","reference"} from standard input and writes, in
order, lines {"id","reward","correct","valid_format","answer","verdict",...}.

Lines that are there together are scored together, so that a reward of kind http is asked
for a batch of its size at once; a line that is typed is answered at once.

Exit status: 0, also if the reward failed on some responses (their reward is null, with an
error); 1 if the deciding reward failed on every response it was asked for, if a line could
not be read (it is answered with {"id","error"} in its place), or if reading or writing
failed; 2 if the flags or the reward file are wrong.`, stdout); done || err != nil {
		return err
	}
	set := reward.Default()
	if *file != "" {
		var err error
		if set, err = loadRewards(*file); err != nil {
			return stage.Usage(err)
		}
	}
	sum, err := rewardio.ScoreLines(ctx, stdin, stdout, set)
	if err != nil {
		return err
	}
	fmt.Fprintf(stderr, "%d responses: %d equal, %d different, %d undecided, %d ungraded\n",
		sum.Lines-sum.Bad, sum.Equal, sum.Different, sum.Undecided, sum.Ungraded)
	if sum.AllFailed() {
		err = fmt.Errorf("%w: %d of %d; the last error: %w", errReward, sum.Failed, sum.Lines-sum.Bad, sum.LastFailure)
	}
	return errors.Join(bad(sum), err)
}

// parse reads a sub-command's flags; done after --help.
func parse(f *pflag.FlagSet, args []string, about string, stdout io.Writer) (done bool, err error) {
	f.SetOutput(io.Discard)
	switch err := f.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		_, err := fmt.Fprintf(stdout, "%s\n\n%s", about, f.FlagUsages())
		return true, err
	case err != nil:
		return false, stage.Usage(err)
	case f.NArg() > 0:
		return false, stage.Usage(fmt.Errorf("unexpected argument %q: lines are read from standard input", f.Arg(0)))
	}
	return false, nil
}

func bad(sum rewardio.Summary) error {
	if sum.Bad > 0 {
		return fmt.Errorf("%w: %d of %d, each answered in its place", errLines, sum.Bad, sum.Lines)
	}
	return nil
}
