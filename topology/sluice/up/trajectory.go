package up

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/sluice-rl/sluice/schemas"
	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
	"github.com/sluice-rl/sluice/topology/sluice/terminal"
)

// detokenizer turns token ids into text.
type detokenizer func(ctx context.Context, tokens []uint32) (string, error)

// printTrajectory prints one trajectory token for token as it is trained on: what the
// policy sampled is marked, everything else was given to it.
func printTrajectory(ctx context.Context, w io.Writer, m *sluicev1.Scored, decode detokenizer, colours bool) {
	t := m.GetTrajectory()
	place := identity.PlaceOf(t)
	fmt.Fprintf(w, "One trajectory: %s, question %s\n", place, terminal.Escape(t.GetPrompt().GetProblem().GetQuestionId()))
	fmt.Fprintf(w, "  %s\n", terminal.EscapeLines(indent(t.GetPrompt().GetProblem().GetQuestion())))
	fmt.Fprintf(w, "  reference answer: %s\n", terminal.Escape(t.GetPrompt().GetProblem().GetAnswer()))
	mark := marks(colours)
	fmt.Fprintf(w, "  %s tokens are trained on (loss mask 1); the rest was given to the policy.\n\n", mark.trained("marked"))
	fmt.Fprintf(w, "prompt, %d tokens, not trained on\n\n", tokens.Count(t.GetPromptTokens()))
	for i, turn := range t.GetTurns() {
		fmt.Fprintf(w, "turn %d: %s, %d tokens sampled by policy version %s%s\n", i+1, kindText(turn), tokens.Count(turn.GetTokens()), versions(turn), truncated(turn))
		fmt.Fprintf(w, "%s\n", mark.trained(text(ctx, decode, tokens.ReadIDs(turn.GetTokens()), turn.GetText())))
		if e := turn.GetExecution(); e != nil {
			fmt.Fprintf(w, "\n  ran %.0f ms in a sandbox: %s\n", e.GetWallMs(), outcome(e))
		}
		if tokens.Count(turn.GetGlueTokens()) > 0 {
			fmt.Fprintf(w, "observation and the template around it, %d tokens, not trained on\n", tokens.Count(turn.GetGlueTokens()))
			fmt.Fprintf(w, "%s\n", mark.given(text(ctx, decode, tokens.ReadIDs(turn.GetGlueTokens()), turn.GetObservation())))
		}
		fmt.Fprintln(w)
	}
	verdict := "wrong"
	switch {
	case !m.GetGraded():
		verdict = "not graded: " + m.GetUngradedReason()
	case m.GetCorrect():
		verdict = "correct"
	case m.GetAnswer() == "":
		verdict = "no readable box"
	}
	fmt.Fprintf(w, "ended by %s; answer %q: %s; reward %+g\n",
		schemas.EnumText(t.GetEndReason()),
		terminal.Escape(m.GetAnswer()), terminal.Escape(verdict), m.GetReward())
}

// text is the decoded tokens, or what the event says where there is no decoder.
func text(ctx context.Context, decode detokenizer, tokens []uint32, otherwise string) string {
	if decode != nil {
		if s, err := decode(ctx, tokens); err == nil {
			return terminal.EscapeLines(strings.Trim(s, "\n"))
		}
	}
	return terminal.EscapeLines(otherwise)
}

func kindText(turn *sluicev1.Turn) string {
	switch turn.GetKind() {
	case sluicev1.TurnKind_TURN_KIND_TOOL:
		return "a code call"
	case sluicev1.TurnKind_TURN_KIND_ANSWER:
		return "an answer"
	case sluicev1.TurnKind_TURN_KIND_UNSPECIFIED:
		return "unfinished"
	}
	return schemas.EnumText(turn.GetKind()) + " (" + terminal.Escape(turn.GetInvalidReason()) + ")"
}

func versions(turn *sluicev1.Turn) string {
	oldest, newest, ok := tokens.VersionRange(turn.GetVersions())
	switch {
	case !ok:
		return "-"
	case oldest != newest:
		return fmt.Sprintf("%d to %d", oldest, newest)
	}
	return fmt.Sprint(oldest)
}

func truncated(turn *sluicev1.Turn) string {
	if turn.GetTruncated() {
		return ", cut by its length"
	}
	return ""
}

func outcome(e *sluicev1.Execution) string {
	s := schemas.EnumText(e.GetOutcome())
	if e.GetException() != "" {
		s += " (" + terminal.Escape(e.GetException()) + ")"
	}
	return s
}

func indent(s string) string { return strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n  ") }

// marking shows which text is trained on, line by line.
type marking struct{ trained, given func(string) string }

func marks(colours bool) marking {
	if !colours {
		// Brackets: ⟦ … ⟧ do not occur in code or mathematics.
		return marking{
			trained: func(s string) string { return "⟦" + s + "⟧" },
			given:   func(s string) string { return s },
		}
	}
	paint := func(code string) func(string) string {
		return func(s string) string {
			lines := strings.Split(s, "\n")
			for i := range lines {
				lines[i] = code + lines[i] + "\x1b[0m"
			}
			return strings.Join(lines, "\n")
		}
	}
	return marking{trained: paint("\x1b[1;32m"), given: paint("\x1b[2m")}
}
