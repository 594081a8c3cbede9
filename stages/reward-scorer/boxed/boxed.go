package boxed

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// DefaultWindow is how many code points from the end are searched.
const DefaultWindow = 300

// WholeText as Config.Window searches the whole text.
const WholeText = -1

const opener = `\boxed{`

// Strictness says what happens if the chosen box never closes.
type Strictness string

const (
	// Balanced, the default: a box whose braces do not balance is no box.
	Balanced Strictness = "balanced"
	// Earlier: a box that does not close is skipped and the next candidate is
	// tried, so "\boxed{5} … \boxed{7" answers 5.
	Earlier Strictness = "earlier"
	// Open: a box that does not close runs to the end of the text, so
	// "\boxed{7" answers 7. It rewards answers cut off by a length limit.
	Open Strictness = "open"
)

// Choice says which box counts if the window holds several.
type Choice string

const (
	// Last, the default: the box that opens last, also if it stands inside
	// another one.
	Last Choice = "last"
	// First: the box that opens first. It denies a policy its second thoughts.
	First Choice = "first"
	// Single: exactly one box may open in the window; several are no box. It
	// denies a policy the spreading of guesses.
	Single Choice = "single"
)

// Thought says whether a thought that never ends is read.
type Thought string

const (
	// ThoughtRead, the default: a box counts wherever it stands.
	ThoughtRead Thought = "read"
	// ThoughtMustEnd: a text whose last <think> has no </think> behind it holds no
	// answer; what stands in the box was not yet meant as one.
	ThoughtMustEnd Thought = "must_end"
)

// Config is the rule of extraction. The zero value is the reference rule.
type Config struct {
	// Window is how many code points from the end are searched; 0 means
	// DefaultWindow, WholeText (-1) no limit. A box that opens before the
	// window is not seen, whatever it holds.
	Window int `json:"window,omitempty"`
	// Strictness is Balanced if empty.
	Strictness Strictness `json:"strictness,omitempty"`
	// Choice is Last if empty.
	Choice Choice `json:"choice,omitempty"`
	// Thought is ThoughtRead if empty.
	Thought Thought `json:"thought,omitempty"`
}

// ErrConfig is wrapped by every error of Validate.
var ErrConfig = errors.New("boxed: bad configuration")

// Validate says which field of c cannot be used.
func (c Config) Validate() error {
	if c.Window < WholeText {
		return fmt.Errorf("%w: window is %d; want a number of code points, 0 for %d, or %d for the whole text",
			ErrConfig, c.Window, DefaultWindow, WholeText)
	}
	switch c.Strictness {
	case "", Balanced, Earlier, Open:
	default:
		return fmt.Errorf("%w: strictness is %q; want %q, %q or %q", ErrConfig, c.Strictness, Balanced, Earlier, Open)
	}
	switch c.Choice {
	case "", Last, First, Single:
	default:
		return fmt.Errorf("%w: choice is %q; want %q, %q or %q", ErrConfig, c.Choice, Last, First, Single)
	}
	switch c.Thought {
	case "", ThoughtRead, ThoughtMustEnd:
	default:
		return fmt.Errorf("%w: thought is %q; want %q or %q", ErrConfig, c.Thought, ThoughtRead, ThoughtMustEnd)
	}
	return nil
}

// Reason says why there is no box.
type Reason string

const (
	NoBox      Reason = "no_box"             // no opener in the window
	Unbalanced Reason = "unbalanced"         // the box that counts never closes
	Several    Reason = "several"            // more than one box under Choice Single
	Unfinished Reason = "unfinished_thought" // under ThoughtMustEnd
)

// Box is the outcome of a search.
type Box struct {
	// Answer is what stands between the braces, white space included; empty
	// unless Found. A found box may hold the empty text.
	Answer string
	Found  bool
	// Reason is set exactly if Found is false.
	Reason Reason
}

// Find applies the rule to text.
func (c Config) Find(text string) Box {
	if c.Thought == ThoughtMustEnd && strings.LastIndex(text, "<think>") > strings.LastIndex(text, "</think>") {
		return Box{Reason: Unfinished}
	}
	tail := c.tail(text)
	switch c.Choice {
	case First:
		return c.walk(tail, strings.Index(tail, opener), func(at int) int {
			next := strings.Index(tail[at+len(opener):], opener)
			if next < 0 {
				return -1
			}
			return at + len(opener) + next
		})
	case Single:
		if strings.Count(tail, opener) > 1 {
			return Box{Reason: Several}
		}
	}
	return c.walk(tail, strings.LastIndex(tail, opener), func(at int) int {
		return strings.LastIndex(tail[:at], opener)
	})
}

// maxTried bounds how many unclosed boxes Earlier looks behind, so that a text
// of nothing but openers costs linear time.
const maxTried = 64

func (c Config) walk(tail string, at int, next func(int) int) Box {
	if at < 0 {
		return Box{Reason: NoBox}
	}
	for tried := 0; at >= 0 && tried < maxTried; tried++ {
		inside := tail[at+len(opener):]
		if end := closing(inside); end >= 0 {
			return Box{Answer: inside[:end], Found: true}
		}
		switch c.Strictness {
		case Open:
			return Box{Answer: inside, Found: true}
		case Earlier:
			at = next(at)
		default:
			return Box{Reason: Unbalanced}
		}
	}
	return Box{Reason: Unbalanced}
}

// closing returns the offset of the brace that closes a box opened just before
// inside, or -1. Escaped braces count like any others, as in the reference.
func closing(inside string) int {
	depth := 1
	for i := 0; i < len(inside); i++ {
		switch inside[i] {
		case '{':
			depth++
		case '}':
			depth--
			if depth == 0 {
				return i
			}
		}
	}
	return -1
}

// tail returns the last Window code points of text. Each byte of invalid UTF-8
// counts as one code point.
func (c Config) tail(text string) string {
	left := c.Window
	if left == WholeText {
		return text
	}
	if left == 0 {
		left = DefaultWindow
	}
	at := len(text)
	for ; left > 0 && at > 0; left-- {
		_, size := utf8.DecodeLastRuneInString(text[:at])
		at -= size
	}
	return text[at:]
}
