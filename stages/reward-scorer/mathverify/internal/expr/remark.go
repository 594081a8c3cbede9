package expr

import (
	"slices"
	"strings"
)

// Remark is the words that stand with a quantity and that a filler is not: what
// is counted, what is said of it. Words that belong to a place in front of or
// behind the quantity bear a mark for it.
type Remark []RemarkWord

type RemarkWord struct {
	Text   string
	Free   bool // may stand on one side only
	Denies bool // turns round what is said
}

func (r Remark) Has(text string) bool {
	return slices.ContainsFunc(r, func(w RemarkWord) bool { return w.Text == text })
}

// Key is what two remarks that say the same share.
func (r Remark) Key() string {
	var parts []string
	for _, w := range r {
		parts = append(parts, w.Text)
	}
	slices.Sort(parts)
	return strings.Join(slices.Compact(parts), " ")
}

// Only returns the words of r that are not in s.
func (r Remark) Only(s Remark) Remark {
	var out Remark
	for _, w := range r {
		if !s.Has(w.Text) {
			out = append(out, w)
		}
	}
	return out
}

func (r Remark) AllFree() bool {
	return !slices.ContainsFunc(r, func(w RemarkWord) bool { return !w.Free })
}

// Denies says whether a word turns round what is said.
func (r Remark) Denies() bool {
	return slices.ContainsFunc(r, func(w RemarkWord) bool { return w.Denies })
}
