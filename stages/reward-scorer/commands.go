package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/check"
	"github.com/sluice-rl/sluice/stages/reward-scorer/reward"
	"github.com/sluice-rl/sluice/stages/reward-scorer/reward/rewardfile"
	"github.com/sluice-rl/sluice/stages/reward-scorer/rewardio"
	"github.com/sluice-rl/sluice/topology/process"
)

var (
	// errLines: some lines were answered with an error in their place.
	errLines = errors.New("lines that could not be read")
	// errReward: no response got a reward, because the one that decides failed.
	errReward = errors.New("the reward failed on every response")
)

const checkAbout = `Compares answers: reads lines {"id","gold","pred"} from standard input and writes, in order,
lines {"id","verdict","method","reason","gold_read","pred_read","micros"}.

Exit status 1: a line could not be read (it is answered with {"id","error"} in its place), or
reading or writing failed.`

// checkCommand is `reward-scorer check`.
func checkCommand() process.Command {
	var profile string
	return process.Command{
		Name: "check", Short: "Compare answers with references, line by line", About: checkAbout,
		Flags: func(f *process.Flags) {
			f.Group("Comparison").StringVar(&profile, "profile", string(mathverify.Sound), "conventions of comparison: sound, or compat for those of Math-Verify")
		},
		Check: func() error { return mathverify.Options{Profile: mathverify.Profile(profile)}.Validate() },
		Run: func(_ context.Context, l *process.Life) error {
			sum, err := check.Lines(l.Stdin, l.Stdout, mathverify.Options{Profile: mathverify.Profile(profile)})
			if err != nil {
				return err
			}
			fmt.Fprintf(l.Stderr, "%d pairs: %d equal, %d different, %d undecided\n", sum.Lines-sum.Bad, sum.Equal, sum.Different, sum.Undecided)
			return bad(sum.Bad, sum.Lines)
		},
	}
}

const scoreAbout = `Scores responses: reads lines {"id","text","reference"} from standard input and writes, in
order, lines {"id","reward","correct","valid_format","answer","verdict",...}.

Lines that are there together are scored together, so that a reward of kind http is asked
for a batch of its size at once; a line that is typed is answered at once.

Exit status 0, also if the reward failed on some responses (their reward is null, with an
error); 1 if the deciding reward failed on every response it was asked for, if a line could
not be read (it is answered with {"id","error"} in its place), or if reading or writing
failed.`

// scoreCommand is `reward-scorer score`.
func scoreCommand() process.Command {
	var file string
	var set *reward.Set
	return process.Command{
		Name: "score", Short: "Score responses, line by line", About: scoreAbout,
		Flags: func(f *process.Flags) { f.Group("Reward").StringVar(&file, "reward", "", rewardfile.FileUsage) },
		Check: func() (err error) {
			set, err = (&rewardfile.Flags{File: file}).Set()
			return err
		},
		Run: func(ctx context.Context, l *process.Life) error { return score(ctx, set, l) },
	}
}

func score(ctx context.Context, set *reward.Set, l *process.Life) error {
	sum, err := rewardio.ScoreLines(ctx, l.Stdin, l.Stdout, set)
	if err != nil {
		return err
	}
	fmt.Fprintf(l.Stderr, "%d responses: %d equal, %d different, %d undecided, %d ungraded\n",
		sum.Lines-sum.Bad, sum.Equal, sum.Different, sum.Undecided, sum.Ungraded)
	if sum.AllFailed() {
		err = fmt.Errorf("%w: %d of %d; the last error: %w", errReward, sum.Failed, sum.Lines-sum.Bad, sum.LastFailure)
	}
	return errors.Join(bad(sum.Bad, sum.Lines), err)
}

func bad(n, of int) error {
	if n > 0 {
		return fmt.Errorf("%w: %d of %d, each answered in its place", errLines, n, of)
	}
	return nil
}
