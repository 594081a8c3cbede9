package mathverify

import (
	"slices"
	"strings"
)

// remark is the words that stand with a quantity and that a filler is not: what
// is counted, what is said of it. Words that belong to a place in front of or
// behind the quantity bear a mark for it.
type remark []remarkWord

type remarkWord struct {
	text   string
	free   bool // may stand on one side only
	denies bool // turns round what is said
}

func (r remark) has(text string) bool {
	return slices.ContainsFunc(r, func(w remarkWord) bool { return w.text == text })
}

// key is what two remarks that say the same share.
func (r remark) key() string {
	var parts []string
	for _, w := range r {
		parts = append(parts, w.text)
	}
	slices.Sort(parts)
	return strings.Join(slices.Compact(parts), " ")
}

// only returns the words of r that are not in s.
func (r remark) only(s remark) remark {
	var out remark
	for _, w := range r {
		if !s.has(w.text) {
			out = append(out, w)
		}
	}
	return out
}

func (r remark) allFree() bool {
	return !slices.ContainsFunc(r, func(w remarkWord) bool { return !w.free })
}

// denies says whether a word turns round what is said.
func (r remark) denies() bool {
	return slices.ContainsFunc(r, func(w remarkWord) bool { return w.denies })
}
