package observation

import (
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// The fixed texts. A policy learns to read them: changing one changes what it sees.
const (
	OutOfMemory = "Error: execution exceeded the memory limit."
	OutputLimit = "Error: execution exceeded the output limit."
	Killed      = "Error: execution was killed."
)

// Text is what the policy is told of a run, before Defuse. The streams of e are taken
// as they are: ClipStream has cut them.
func Text(e *sluicev1.Execution) string {
	switch e.GetOutcome() {
	case sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_TIMEOUT:
		seconds := strconv.FormatFloat(float64(e.GetTimeoutMs())/1000, 'f', -1, 64)
		return "Error: execution timed out after " + seconds + " seconds."
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
