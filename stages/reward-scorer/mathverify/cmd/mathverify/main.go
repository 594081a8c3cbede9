// Command mathverify says whether mathematical answers mean the same, from a shell or
// over HTTP, without the rest of the pipeline.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/check"
	"github.com/sluice-rl/sluice/topology/process"
)

func main() { os.Exit(process.Main(program())) }

func program() process.Command {
	return process.Command{
		Name: "mathverify", Short: "Compare mathematical answers",
		About:    "Says of a reference and an answer, each LaTeX, plain text or a mixture, whether they are equal,\ndifferent or undecided, with the method, a reason and both readings.",
		Commands: []process.Command{checkCommand(), compareCommand(), extractCommand(), serveCommand()},
	}
}

// options are the flags of a comparison.
type options struct {
	o                   mathverify.Options
	profile, gold, pred string
}

func (o *options) register(f *process.Flags) {
	g := f.Group("Comparison")
	g.StringVar(&o.profile, "profile", string(mathverify.Sound), "conventions: sound, or compat for those of Math-Verify")
	g.IntVar(&o.o.Decimals, "decimals", mathverify.DefaultDecimals, "decimals to which a decimal number counts, 1 to 30")
	g.BoolVar(&o.o.Strict, "strict", false, "let nothing be left out on one side: a unit, a sign for per cent, a base, words")
	g.BoolVar(&o.o.SetAgainstInequality, "set-against-inequality", false, "in compat, compare a reference that is a set with an inequality")
	g.StringVar(&o.gold, "gold-from", "", "where a reference's answer may stand, of box, tag, said, choice, formula, whole; empty: all")
	g.StringVar(&o.pred, "pred-from", "", "where a prediction's answer may stand; empty: all")
	g.BoolVar(&o.o.ThoughtMustEnd, "thought-must-end", false, "a prediction whose last <think> never ends has no answer")
}

func (o *options) check() (err error) {
	o.o.Profile = mathverify.Profile(o.profile)
	if o.o.Gold, err = mathverify.ParseTargets(o.gold); err != nil {
		return fmt.Errorf("--gold-from: %w", err)
	}
	if o.o.Pred, err = mathverify.ParseTargets(o.pred); err != nil {
		return fmt.Errorf("--pred-from: %w", err)
	}
	return o.o.Validate()
}

var (
	errLines    = errors.New("lines that could not be read")
	errNotEqual = errors.New("not equal")
)

func checkCommand() process.Command {
	o := &options{}
	return process.Command{
		Name: "check", Short: "Compare answers with references, line by line",
		About: `Reads lines {"id","gold","pred"} from standard input and writes, in order, lines
{"id","verdict","method","reason","gold_read","pred_read","micros"}. Gold may be a text, a
number, or a list of references of which any is right; a line may set "decimals", "strict"
and "set_against_inequality" for itself.

Exit status 1: a line could not be read (it is answered with {"id","error"} in its place), or
reading or writing failed.`,
		Flags: o.register, Check: o.check,
		Run: func(_ context.Context, l *process.Life) error {
			sum, err := check.Lines(l.Stdin, l.Stdout, o.o)
			if err != nil {
				return err
			}
			fmt.Fprintf(l.Stderr, "%d pairs: %d equal, %d different, %d undecided\n", sum.Lines-sum.Bad, sum.Equal, sum.Different, sum.Undecided)
			if sum.Bad > 0 {
				return fmt.Errorf("%w: %d of %d, each answered in its place", errLines, sum.Bad, sum.Lines)
			}
			return nil
		},
	}
}

func compareCommand() process.Command {
	o := &options{}
	return process.Command{
		Name: "compare", Args: []string{"GOLD", "PRED"}, Short: "Compare two answers",
		About: "Compares two answers and prints the verdict, the reason and both readings.\n\nExit status 0: equal; 1: different or undecided.",
		Flags: o.register, Check: o.check,
		Run: func(_ context.Context, l *process.Life) error {
			v := mathverify.Compare(l.Args[0], l.Args[1], o.o)
			if _, err := fmt.Fprintf(l.Stdout, "%s: %s (%s)\ngold: %s\npred: %s\n", v.Outcome, v.Reason, v.Method, v.GoldRead, v.PredRead); err != nil {
				return err
			}
			if v.Outcome != mathverify.Equal {
				return errNotEqual
			}
			return nil
		},
	}
}

func extractCommand() process.Command {
	return process.Command{
		Name: "extract", Args: []string{"TEXT"}, Short: "Print the answer that a text gives",
		About: "Prints what of a text counts as its answer.",
		Run: func(_ context.Context, l *process.Life) error {
			_, err := fmt.Fprintln(l.Stdout, mathverify.Extract(l.Args[0]))
			return err
		},
	}
}

func serveCommand() process.Command {
	o := &options{}
	return process.Command{
		Name: "serve", Short: "Compare answers over HTTP",
		About: `Answers POST /check: the body is one or several lines as check reads them, the answer the
lines that check writes. A body may have up to 64 MiB.`,
		Serves: true, HTTPAddr: "127.0.0.1:8093", HTTPServes: "POST /check",
		Flags: o.register, Check: o.check,
		Run: func(ctx context.Context, l *process.Life) error {
			l.HTTP.Handle("POST /check", handler(o.o))
			l.Health.Begun()
			<-ctx.Done()
			return nil
		},
	}
}

// maxBody bounds a request.
const maxBody = 64 << 20

func handler(o mathverify.Options) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-ndjson")
		// What is wrong with a line is answered in its place; an error here is the
		// connection's, and nobody is left to tell.
		_, _ = check.Lines(http.MaxBytesReader(w, r.Body, maxBody), w, o)
	})
}
