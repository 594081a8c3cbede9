package stage

import (
	"errors"
	"strconv"
	"strings"
	"unicode"

	"github.com/sluice-rl/sluice/stages/internal/runner"
	"github.com/sluice-rl/sluice/topology"
)

// The exit codes of every stage.
const (
	ExitOK       = 0
	ExitFailed   = 1
	ExitUsage    = 2
	ExitUnusable = 3
	ExitHardStop = 4
	ExitFenced   = 5
)

var (
	// ErrUsage: flags, environment or configuration file say something impossible.
	ErrUsage = errors.New("usage")
	// ErrUnusable: something the stage depends on answered and cannot be used: it is
	// of the wrong version or refuses us. Absence is waited for and no such error.
	ErrUnusable = errors.New("dependency unusable")
	// ErrHardStop: a second signal came before the work in flight was done.
	ErrHardStop = errors.New("stopped without finishing the work in flight")
)

// marked carries a sentinel without changing an error's text.
type marked struct {
	error
	mark error
}

func (m *marked) Unwrap() []error { return []error{m.error, m.mark} }

// Usage marks an error as the user's to mend (exit code 2). A nil err gives nil.
func Usage(err error) error { return mark(err, ErrUsage) }

// Unusable marks an error as a dependency that cannot be used (exit code 3). A nil
// err gives nil.
func Unusable(err error) error { return mark(err, ErrUnusable) }

func mark(err, m error) error {
	if err == nil {
		return nil
	}
	return &marked{err, m}
}

// ExitCode is the exit status that an error of Run, Validate or a command stands for.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, ErrHardStop):
		return ExitHardStop
	case errors.Is(err, runner.ErrFenced):
		return ExitFenced
	case errors.Is(err, ErrUsage), errors.Is(err, runner.ErrConfig), errors.Is(err, topology.ErrInvalid):
		return ExitUsage
	case errors.Is(err, ErrUnusable), errors.Is(err, runner.ErrUnsupported):
		return ExitUnusable
	}
	return ExitFailed
}

// printable escapes control characters: an error may quote hostile text, and this
// goes to a terminal.
func printable(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r != '\n' && !unicode.IsPrint(r) {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
