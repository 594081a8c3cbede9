package tokenizer

import (
	"container/heap"
	"math/bits"
	"strings"
)

// mergeTable says which two tokens become one, and which pairs come first: an open hash
// table, because it is asked a few times for every byte of a text.
type mergeTable struct {
	keys  []uint64
	rules []rule
	shift int
}

// rule is one merge: the lower the rank, the earlier it is applied.
type rule struct{ rank, id uint32 }

// noKey marks an empty place. No pair has it: ids are below 2^31.
const noKey = ^uint64(0)

func newMergeTable(n int) mergeTable {
	width := bits.Len(uint(2*n + 1))
	t := mergeTable{keys: make([]uint64, 1<<width), rules: make([]rule, 1<<width), shift: 64 - width}
	for i := range t.keys {
		t.keys[i] = noKey
	}
	return t
}

func pair(left, right uint32) uint64 { return uint64(left)<<32 | uint64(right) }

// place is where the key is, or where it would be.
func (t *mergeTable) place(key uint64) int {
	i := int(key * 0x9E3779B97F4A7C15 >> t.shift)
	for t.keys[i] != key && t.keys[i] != noKey {
		i = (i + 1) & (len(t.keys) - 1)
	}
	return i
}

// add sets a pair's rule. The last one counts, as in the library.
func (t *mergeTable) add(left, right uint32, r rule) {
	i := t.place(pair(left, right))
	t.keys[i], t.rules[i] = pair(left, right), r
}

func (t *mergeTable) find(left, right uint32) (rule, bool) {
	i := t.place(pair(left, right))
	return t.rules[i], t.keys[i] != noKey
}

// Pieces up to this length are remembered, and this many of them, per merger.
const (
	rememberedLength = 48
	rememberedPieces = 1 << 15
	// shortPiece is up to how many bytes looking through all pairs beats a heap.
	shortPiece = 40
)

// merger merges pieces into tokens and remembers the short ones. It is used by one
// goroutine at a time.
type merger struct {
	t     *Tokenizer
	known map[string]stretch
	ids   []uint32

	parts []uint32
	ranks []rule
	heap  mergeHeap
	links []link
}

// stretch is where a remembered piece's ids lie in ids.
type stretch struct{ from, to uint32 }

func newMerger(t *Tokenizer) *merger {
	return &merger{t: t, known: map[string]stretch{}}
}

func (m *merger) append(ids []uint32, piece string) []uint32 {
	if len(piece) == 1 {
		return append(ids, m.t.bytes[piece[0]])
	}
	if len(piece) > rememberedLength {
		return m.merge(ids, piece)
	}
	if s, ok := m.known[piece]; ok {
		return append(ids, m.ids[s.from:s.to]...)
	}
	if len(m.known) == rememberedPieces {
		clear(m.known)
		m.ids = m.ids[:0]
	}
	from := len(m.ids)
	m.ids = m.merge(m.ids, piece)
	// The piece is a part of the caller's text, which need not live as long.
	m.known[strings.Clone(piece)] = stretch{uint32(from), uint32(len(m.ids))}
	return append(ids, m.ids[from:]...)
}

func (m *merger) merge(ids []uint32, piece string) []uint32 {
	if m.t.wholeFirst {
		if id, ok := m.t.ids[piece]; ok {
			return append(ids, id)
		}
	}
	if len(piece) <= shortPiece {
		return m.mergeShort(ids, piece)
	}
	return m.mergeLong(ids, piece)
}

// noRule is the rank of a pair that does not merge.
const noRule = ^uint32(0)

func (m *merger) rule(left, right uint32) rule {
	if r, ok := m.t.merges.find(left, right); ok {
		return r
	}
	return rule{rank: noRule}
}

// mergeShort applies the lowest rule, the leftmost first, until none applies.
func (m *merger) mergeShort(ids []uint32, piece string) []uint32 {
	parts, ranks := m.parts[:0], m.ranks[:0]
	for i := range len(piece) {
		parts = append(parts, m.t.bytes[piece[i]])
	}
	// ranks[i] is the rule of parts[i] and parts[i+1].
	for i := range len(parts) - 1 {
		ranks = append(ranks, m.rule(parts[i], parts[i+1]))
	}
	for len(ranks) > 0 {
		best := 0
		for i := range ranks {
			if ranks[i].rank < ranks[best].rank {
				best = i
			}
		}
		if ranks[best].rank == noRule {
			break
		}
		parts[best] = ranks[best].id
		parts = append(parts[:best+1], parts[best+2:]...)
		ranks = append(ranks[:best], ranks[best+1:]...)
		if best > 0 {
			ranks[best-1] = m.rule(parts[best-1], parts[best])
		}
		if best < len(ranks) {
			ranks[best] = m.rule(parts[best], parts[best+1])
		}
	}
	m.parts, m.ranks = parts, ranks
	return append(ids, parts...)
}

// link is a part of a long piece in a list of them.
type link struct {
	id         uint32
	prev, next int32
	// gone says that the part was merged into the one before it.
	gone bool
}

// candidate is a merge that was possible when it was queued.
type candidate struct {
	rule
	at          int32
	left, right uint32
}

type mergeHeap []candidate

func (h mergeHeap) Len() int { return len(h) }
func (h mergeHeap) Less(i, j int) bool {
	return h[i].rank < h[j].rank || h[i].rank == h[j].rank && h[i].at < h[j].at
}
func (h mergeHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *mergeHeap) Push(x any)   { *h = append(*h, x.(candidate)) }
func (h *mergeHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

// mergeLong does what mergeShort does, with a heap of the possible merges, so that a piece
// of a million letters takes seconds and not days.
func (m *merger) mergeLong(ids []uint32, piece string) []uint32 {
	links, h := m.links[:0], m.heap[:0]
	for i := range len(piece) {
		links = append(links, link{id: m.t.bytes[piece[i]], prev: int32(i) - 1, next: int32(i) + 1})
	}
	links[len(links)-1].next = -1
	possible := func(at int32) (candidate, bool) {
		if at < 0 || links[at].next < 0 {
			return candidate{}, false
		}
		left, right := links[at].id, links[links[at].next].id
		r, ok := m.t.merges.find(left, right)
		return candidate{r, at, left, right}, ok
	}
	for i := range links {
		if c, ok := possible(int32(i)); ok {
			h = append(h, c)
		}
	}
	heap.Init(&h)
	for len(h) > 0 {
		c := heap.Pop(&h).(candidate)
		l := &links[c.at]
		// What was queued may have been overtaken by another merge.
		if l.gone || l.id != c.left || l.next < 0 || links[l.next].id != c.right {
			continue
		}
		merged := &links[l.next]
		merged.gone = true
		l.id, l.next = c.id, merged.next
		if l.next >= 0 {
			links[l.next].prev = c.at
		}
		if before, ok := possible(l.prev); ok {
			heap.Push(&h, before)
		}
		if after, ok := possible(c.at); ok {
			heap.Push(&h, after)
		}
	}
	for at := int32(0); at >= 0; at = links[at].next {
		ids = append(ids, links[at].id)
	}
	m.links, m.heap = links, h
	if cap(links) > 1<<16 {
		m.links, m.heap = nil, nil
	}
	return ids
}
