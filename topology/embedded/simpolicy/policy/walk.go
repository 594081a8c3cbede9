package policy

import (
	"math"
	"slices"

	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/tokenizer"
)

// Token is one token of a turn with what the policy says of it.
type Token struct {
	ID uint32
	// Logprob is of the distribution it is drawn from, temperature applied.
	Logprob float64
	// Entropy of that distribution, in nats.
	Entropy float64
	// Site whose choice the token belongs to; Decided is false where none does.
	Site    Site
	Decided bool
	// Gradient of Logprob by the site's logits; only where Decided and asked for.
	Gradient []float64
	// Foreign: the policy's grammar cannot write this token here. It has no logprob.
	Foreign bool
}

// Sampling is how tokens are drawn.
type Sampling struct {
	// Temperature 0 takes the likeliest token.
	Temperature float64
	// TopP keeps the likeliest tokens up to this mass; 1 keeps all.
	TopP float64
	// TopK keeps that many; 0 keeps all.
	TopK int
}

// Plain is what the policy is trained under.
var Plain = Sampling{Temperature: 1, TopP: 1}

// Finish says why a walk ended.
type Finish int

// The ways to end.
const (
	// Stopped by the end-of-turn token or a stop token.
	Stopped Finish = iota
	// Length: the limit of new tokens.
	Length
	// GivenOut: scoring came to the end of the tokens given.
	GivenOut
)

// walk is one run of the grammar: it follows the tokens given, then draws.
type walk struct {
	tok      *tokenizer.Tokenizer
	eos      uint32
	params   Parameters
	sampling Sampling
	gradient bool

	given []uint32
	pos   int // in given
	draw  func() float64
	limit int // new tokens
	stops []uint32

	out    []Token // of given tokens and of new ones
	done   bool
	lost   bool // the given tokens left the grammar
	finish Finish
	stop   uint32

	one [1]branch // room for a token that is certain
}

// option is one text of a choice. End adds the end-of-turn token.
type option struct {
	text string
	end  bool
	// weight counts for choices with fixed odds only.
	weight float64
}

// say writes a text that is certain.
func (w *walk) say(text string) {
	for _, id := range w.tok.Encode(text) {
		if !w.sure(id) {
			return
		}
	}
}

// sure takes a token that is certain; false if the walk has ended.
func (w *walk) sure(id uint32) bool {
	if w.done || w.lost {
		return false
	}
	w.one[0] = branch{id: id}
	return w.step(w.one[:], nil, noSite) == 0
}

// end writes the end-of-turn token.
func (w *walk) end() { w.sure(w.eos) }

// choose draws, or follows, one of the options by the site's logits, and returns its
// index; -1 if the walk ended in the middle.
func (w *walk) choose(s Site, options []option) int {
	return w.among(s, w.params[s], options)
}

// pick does the same by the options' fixed weights.
func (w *walk) pick(options []option) int {
	logits := make([]float64, len(options))
	for i, o := range options {
		logits[i] = math.Log(o.weight)
	}
	return w.among(noSite, logits, options)
}

// among goes down the tree of the options' tokens. No option's tokens may be the
// beginning of another's.
func (w *walk) among(s Site, logits []float64, options []option) int {
	texts := make([][]uint32, len(options))
	alive := make([]int, len(options))
	for i, o := range options {
		texts[i] = w.tok.Encode(o.text)
		if o.end {
			texts[i] = append(texts[i], w.eos)
		}
		alive[i] = i
	}
	for depth := 0; ; depth++ {
		if w.done || w.lost {
			return -1
		}
		if len(alive) == 1 {
			for _, id := range texts[alive[0]][depth:] {
				if !w.sure(id) {
					return -1
				}
			}
			return alive[0]
		}
		var next []branch
		for _, i := range alive {
			id := texts[i][depth]
			at := slices.IndexFunc(next, func(b branch) bool { return b.id == id })
			if at < 0 {
				next = append(next, branch{id: id})
				at = len(next) - 1
			}
			next[at].options = append(next[at].options, i)
		}
		taken := w.step(next, logits, s)
		if taken < 0 {
			return -1
		}
		alive = next[taken].options
	}
}

// branch is one token that may come next and the options that go on with it.
type branch struct {
	id      uint32
	options []int
	logprob float64 // after temperature and truncation; -Inf if cut off
}

// step takes one token and returns the index of its branch, -1 if the walk ended
// before it.
func (w *walk) step(next []branch, logits []float64, s Site) int {
	scoring := w.draw == nil
	if w.pos == len(w.given) && scoring {
		w.done, w.finish = true, GivenOut
		return -1
	}
	entropy := w.distribution(next, logits)
	taken := 0
	given := w.pos < len(w.given)
	switch {
	case given:
		id := w.given[w.pos]
		taken = slices.IndexFunc(next, func(b branch) bool { return b.id == id && !math.IsInf(b.logprob, -1) })
		if taken < 0 {
			w.lose()
			return -1
		}
		w.pos++
	case len(next) > 1:
		taken = drawFrom(next, w.draw())
	}
	t := Token{ID: next[taken].id, Logprob: next[taken].logprob, Entropy: entropy, Site: s, Decided: s >= 0 && len(next) > 1}
	if t.Decided && w.gradient {
		t.Gradient = gradient(next, taken, logits, w.sampling.Temperature)
	}
	w.out = append(w.out, t)
	if !given {
		w.after(t.ID)
	} else if t.ID == w.eos && w.pos < len(w.given) {
		w.lose()
	}
	return taken
}

// after ends the walk where a new token ends it.
func (w *walk) after(id uint32) {
	switch {
	case id == w.eos:
		w.done, w.finish = true, Stopped
	case slices.Contains(w.stops, id):
		w.done, w.finish, w.stop = true, Stopped, id
	case w.newTokens() >= w.limit:
		w.done, w.finish = true, Length
	}
}

func (w *walk) newTokens() int { return len(w.out) - len(w.given) }

// lose marks the rest of the given tokens as foreign to the grammar.
func (w *walk) lose() {
	w.lost = true
	for ; w.pos < len(w.given); w.pos++ {
		w.out = append(w.out, Token{ID: w.given[w.pos], Site: noSite, Foreign: true})
	}
}

// distribution fills in the branches' logprobs and returns their entropy.
func (w *walk) distribution(next []branch, logits []float64) float64 {
	if len(next) == 1 {
		return 0
	}
	masses := make([]float64, len(next))
	for i, b := range next {
		masses[i] = mass(b.options, logits)
	}
	w.sampling.process(masses)
	var entropy float64
	for i, m := range masses {
		next[i].logprob = m
		if !math.IsInf(m, -1) {
			entropy -= math.Exp(m) * m
		}
	}
	return entropy
}

func mass(options []int, logits []float64) float64 {
	z := make([]float64, len(options))
	for i, o := range options {
		z[i] = logits[o]
	}
	return logSumExp(z)
}

// process turns log masses into logprobs in place.
func (p Sampling) process(m []float64) {
	if p.Temperature == 0 {
		best := 0
		for i := range m {
			if m[i] > m[best] {
				best = i
			}
		}
		for i := range m {
			m[i] = math.Inf(-1)
		}
		m[best] = 0
		return
	}
	for i := range m {
		m[i] /= p.Temperature
	}
	normalise(m)
	if p.TopK > 0 && p.TopK < len(m) || p.TopP < 1 {
		p.truncate(m)
		normalise(m)
	}
}

func (p Sampling) truncate(m []float64) {
	order := make([]int, len(m))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case m[a] > m[b]:
			return -1
		case m[a] < m[b]:
			return 1
		}
		return 0
	})
	var kept float64
	for rank, i := range order {
		if rank > 0 && (kept >= p.TopP || p.TopK > 0 && rank >= p.TopK) {
			m[i] = math.Inf(-1)
			continue
		}
		kept += math.Exp(m[i])
	}
}

func normalise(m []float64) {
	z := logSumExp(m)
	for i := range m {
		m[i] -= z
	}
}

func drawFrom(next []branch, u float64) int {
	last := 0
	for i, b := range next {
		if math.IsInf(b.logprob, -1) {
			continue
		}
		last = i
		if u -= math.Exp(b.logprob); u < 0 {
			return i
		}
	}
	return last
}

// gradient of the taken branch's logprob by the logits. With m_b the mass of branch
// b and T the temperature, logprob = m/T - log sum_b exp(m_b/T); by the logit of
// option i in branch b that is (1[b taken] - p_b) / T times i's share of b.
func gradient(next []branch, taken int, logits []float64, temperature float64) []float64 {
	g := make([]float64, len(logits))
	for k, b := range next {
		factor := -math.Exp(b.logprob)
		if k == taken {
			factor++
		}
		m := mass(b.options, logits)
		for _, o := range b.options {
			g[o] = factor / temperature * math.Exp(logits[o]-m)
		}
	}
	return g
}
