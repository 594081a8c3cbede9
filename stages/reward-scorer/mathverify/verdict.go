package mathverify

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/finding"
)

// Profile is a set of conventions.
type Profile string

const (
	// Sound, the default, is right where a convention would be wrong.
	Sound Profile = "sound"
	// Compat follows the conventions of Math-Verify 0.8 for runs that must
	// reproduce it.
	Compat Profile = "compat"
)

// DefaultDecimals is how many decimals a decimal number is compared to.
const DefaultDecimals = 6

// Options choose the conventions. The zero value is usable.
type Options struct {
	// Profile is Sound if empty.
	Profile Profile
	// Decimals is how many decimals of an inexact number (one written with a
	// decimal point) count; 0 means DefaultDecimals.
	Decimals int
	// SetAgainstInequality lets Compat compare a reference that is a set with an
	// inequality, as Math-Verify's allow_set_relation_comp does. Sound always
	// does.
	SetAgainstInequality bool
	// Strict lets nothing be left out on one side: a unit, a sign for per cent, the
	// base of a number, words. Without it the answer may be shorter than the
	// reference, or say more.
	Strict bool
	// Gold and Pred say what is taken of each text; all, in the order of Extract,
	// if 0.
	Gold, Pred Targets
	// ThoughtMustEnd: a text whose last <think> never ends has no answer.
	ThoughtMustEnd bool
}

var targetNames = map[string]Targets{"box": Box, "tag": Tag, "said": Said, "choice": Choice, "formula": Formula, "whole": Whole}

// ParseTargets reads a list such as "box,formula".
func ParseTargets(list string) (Targets, error) {
	var all Targets
	for _, name := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' }) {
		t := targetNames[name]
		if t == 0 {
			return 0, fmt.Errorf("%w: target is %q; want box, tag, said, choice, formula or whole", ErrOptions, name)
		}
		all |= t
	}
	return all, nil
}

// ErrOptions is wrapped by the errors of Options.Validate.
var ErrOptions = errors.New("mathverify: bad options")

// Validate says which option cannot be used.
func (o Options) Validate() error {
	if o.Profile != "" && o.Profile != Sound && o.Profile != Compat {
		return fmt.Errorf("%w: profile is %q; want %q or %q", ErrOptions, o.Profile, Sound, Compat)
	}
	if o.Gold > finding.AnyTarget || o.Pred > finding.AnyTarget {
		return fmt.Errorf("%w: unknown targets", ErrOptions)
	}
	if o.Decimals < 0 || o.Decimals > 30 {
		return fmt.Errorf("%w: decimals is %d; want 1 to 30, or 0 for %d", ErrOptions, o.Decimals, DefaultDecimals)
	}
	return nil
}
