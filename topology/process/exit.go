package process

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// The exit codes of every binary.
const (
	ExitOK       = 0
	ExitFailed   = 1
	ExitUsage    = 2
	ExitUnusable = 3
	ExitHardStop = 4
	ExitFenced   = 5
	// ExitStopped is what shells give a program that a signal ended.
	ExitStopped = 130
)

const exitCodesText = `Exit codes:
  0    done, or stopped cleanly
  1    failed
  2    flags, environment or configuration are wrong
  3    something it depends on answered and cannot be used: wrong version, refused,
       a directory of something else or in use
  4    stopped hard, work in flight left: by a second signal, or when its time was over
  5    fenced: another process runs with the same --instance-id
  130  a signal stopped it before it had done its work
`

var (
	// ErrUsage: flags, environment or configuration file say something impossible.
	ErrUsage = errors.New("usage")
	// ErrUnusable: something that is depended on answered and cannot be used: it is of
	// the wrong version, refuses us, or is in use. Absence is waited for and no such
	// error.
	ErrUnusable = errors.New("dependency unusable")
	// ErrHardStop: the process ends with work in flight.
	ErrHardStop = errors.New("stopped without finishing the work in flight")
	// ErrFenced: another process has taken this one's place.
	ErrFenced = errors.New("fenced")
	// ErrStopped: a signal came before the work was done.
	ErrStopped = errors.New("stopped by a signal")
)

// Exit says which exit code an error of the program's own stands for.
type Exit struct {
	Err  error
	Code int
}

// Status is an error that is only an exit code: everything has been said.
type Status int

func (s Status) Error() string { return "exit status " + strconv.Itoa(int(s)) }

// marked carries a sentinel without changing an error's text.
type marked struct {
	error
	mark error
}

func (m *marked) Unwrap() []error { return []error{m.error, m.mark} }

// Usage marks an error as the caller's to fix (exit code 2). A nil err gives nil.
func Usage(err error) error { return mark(err, ErrUsage) }

// Unusable marks an error as a dependency that cannot be used (exit code 3). A nil err
// gives nil.
func Unusable(err error) error { return mark(err, ErrUnusable) }

// Stopped marks an error as a signal's doing (exit code 130). A nil err gives nil.
func Stopped(err error) error { return mark(err, ErrStopped) }

func mark(err, m error) error {
	if err == nil {
		return nil
	}
	return &marked{err, m}
}

// ExitCode is the exit code that an error stands for. exits come before the table.
func ExitCode(err error, exits ...Exit) int {
	if err == nil {
		return ExitOK
	}
	var status Status
	if errors.As(err, &status) {
		return int(status)
	}
	table := []Exit{
		{ErrHardStop, ExitHardStop}, {ErrFenced, ExitFenced}, {ErrUsage, ExitUsage},
		{ErrUnusable, ExitUnusable}, {ErrStopped, ExitStopped},
	}
	for _, e := range append(exits, table...) {
		if errors.Is(err, e.Err) {
			return e.Code
		}
	}
	return ExitFailed
}

// afterSignal is how a Run that a signal ended has ended.
func afterSignal(err error, serves bool) error {
	switch {
	case !errors.Is(err, context.Canceled):
		return err
	case serves:
		return nil
	}
	return fmt.Errorf("%w: %w", ErrStopped, err)
}

// printable escapes control characters: an error may quote hostile text, and this goes
// to a terminal.
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
