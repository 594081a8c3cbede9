package observation

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// The fixed texts. A policy learns to read them: changing one changes what it sees.
const (
	OutOfMemory = "Error: execution exceeded the memory limit."
	OutputLimit = "Error: execution exceeded the output limit."
	Killed      = "Error: execution was killed."
)

// Timeout says what the policy is told of a program that ran too long.
type Timeout string

// The forms, by name.
const (
	// Message is a fixed text, whatever was printed: what the reference does.
	Message Timeout = "message"
	// Output is what the program had printed on stdout, and then that text on a line of
	// its own.
	Output Timeout = "output"
)

// ErrTimeout occurs when a form has a name that this version does not know.
var ErrTimeout = errors.New("unknown form of an observation")

// Timeouts lists the forms.
func Timeouts() []string { return []string{string(Message), string(Output)} }

// ParseTimeout reads a form's name.
func ParseTimeout(name string) (Timeout, error) {
	if !slices.Contains(Timeouts(), name) {
		return "", fmt.Errorf("%w: %q: want one of %s", ErrTimeout, name, strings.Join(Timeouts(), ", "))
	}
	return Timeout(name), nil
}

// Recorded is how the form of one run's observation is written down: empty where every
// form gives what Message does.
func (f Timeout) Recorded(e *sluicev1.Execution) string {
	if Text(e, f) == Text(e, Message) {
		return ""
	}
	return string(f)
}

// Text is what the policy is told of a run, before Defuse. The streams of e are taken
// as they are: ClipStream has cut them.
func Text(e *sluicev1.Execution, form Timeout) string {
	switch e.GetOutcome() {
	case sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_TIMEOUT:
		seconds := strconv.FormatFloat(float64(e.GetTimeoutMs())/1000, 'f', -1, 64)
		text := "Error: execution timed out after " + seconds + " seconds."
		if form != Output || e.GetStdout() == "" {
			return text
		}
		return strings.TrimSuffix(e.GetStdout(), "\n") + "\n" + text
	case sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_OUT_OF_MEMORY:
		return OutOfMemory
	case sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_OUTPUT_LIMIT:
		return OutputLimit
	case sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_KILLED:
		return Killed
	case sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_OK:
		return e.GetStdout()
	}
	if e.GetStderr() != "" {
		return e.GetStderr()
	}
	return fmt.Sprintf("Error: process exited with code %d.", e.GetExitCode())
}

// StreamLimit is how many characters of a stream are kept: its last.
const StreamLimit = 4096

// ClipStream makes the text of one stream: kept are its last bytes, dropped counts the
// bytes before them that are known of only by number. Bytes that are no UTF-8 become
// U+FFFD, one for each; of the characters the last StreamLimit are kept behind a
// marker that counts what is gone (in bytes, where only those are known).
func ClipStream(kept []byte, dropped uint64) (text string, clipped bool) {
	n := utf8.RuneCount(kept)
	from := 0
	for range n - StreamLimit {
		_, size := utf8.DecodeRune(kept[from:])
		from += size
	}
	text = string([]rune(string(kept[from:])))
	switch {
	case dropped > 0:
		return fmt.Sprintf("[... truncated %d bytes ...]\n", dropped+uint64(from)) + text, true
	case n > StreamLimit:
		return fmt.Sprintf("[... truncated %d chars ...]\n", n-StreamLimit) + text, true
	}
	return text, false
}
