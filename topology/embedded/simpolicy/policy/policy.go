package policy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"

	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/tokenizer"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/worked"
)

// ErrRequest: a request cannot be sampled as it stands.
var ErrRequest = errors.New("invalid sampling request")

// Policy joins the grammar with a tokenizer and a library of worked solutions. It
// holds no parameters: each call brings its own, so one Policy serves every version.
// It is not changed after New and may be shared.
type Policy struct {
	tok     *tokenizer.Tokenizer
	library *worked.Library
	eos     uint32
	start   uint32
	heads   []head
}

// New builds a policy.
func New(tok *tokenizer.Tokenizer, library *worked.Library) (*Policy, error) {
	p := &Policy{tok: tok, library: library}
	for content, id := range map[string]*uint32{tokenizer.MessageEnd: &p.eos, tokenizer.MessageStart: &p.start} {
		var ok bool
		if *id, ok = tok.ID(content); !ok {
			return nil, fmt.Errorf("the tokenizer lacks %s", content)
		}
	}
	p.heads = p.makeHeads()
	return p, nil
}

// EOS is the token that ends a turn.
func (p *Policy) EOS() uint32 { return p.eos }

// Request asks for one turn.
type Request struct {
	Prompt []uint32
	// Seed and Index (the sample's place in a fork) decide the draws, together with
	// the prompt, so that a turn taken up again does not repeat its own draws.
	Seed  uint64
	Index int
	// MaxTokens is above 0.
	MaxTokens int
	Sampling  Sampling
	// StopTokens end the turn besides EOS.
	StopTokens []uint32
}

// Generation is a sampled turn, or the rest of one.
type Generation struct {
	Tokens []Token
	Finish Finish
	// StopToken is the token of StopTokens that ended it; 0 if none did.
	StopToken uint32
}

// Sample draws one turn.
func (p *Policy) Sample(params Parameters, r Request) (Generation, error) {
	if r.MaxTokens < 1 {
		return Generation{}, fmt.Errorf("%w: max tokens is %d, want above 0", ErrRequest, r.MaxTokens)
	}
	s, err := p.read(r.Prompt)
	if err != nil {
		return Generation{}, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	rng := rand.New(rand.NewPCG(r.Seed, promptHash(r.Prompt, r.Index)))
	w := &walk{
		tok: p.tok, eos: p.eos, params: params, sampling: r.Sampling, given: s.given,
		draw: rng.Float64, limit: r.MaxTokens, stops: r.StopTokens,
	}
	w.turn(&s)
	if w.lost {
		// The turn so far is in no words of this policy: it has nothing to add.
		w.lost = false
		w.say(" I stop here.")
		w.end()
	}
	if !w.done {
		return Generation{}, fmt.Errorf("%w: the turn is already complete", ErrRequest)
	}
	return Generation{Tokens: w.out[len(s.given):], Finish: w.finish, StopToken: w.stop}, nil
}

// Score says what the policy makes of a turn that is already written: for each token
// its logprob, entropy and gradient. Tokens that the grammar cannot write are marked
// Foreign, and so is everything after them.
func (p *Policy) Score(params Parameters, temperature float64, prompt, turn []uint32) ([]Token, error) {
	if !(temperature > 0) || math.IsInf(temperature, 0) {
		return nil, fmt.Errorf("%w: temperature %v cannot be scored, want above 0", ErrRequest, temperature)
	}
	s, err := p.read(prompt)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	before := len(s.given)
	given := append(append([]uint32(nil), s.given...), turn...)
	w := &walk{
		tok: p.tok, eos: p.eos, params: params, gradient: true, given: given,
		sampling: Sampling{Temperature: temperature, TopP: 1},
	}
	w.turn(&s)
	if w.pos < len(w.given) {
		w.lose()
	}
	return w.out[before:], nil
}

func promptHash(prompt []uint32, index int) uint64 {
	h := fnv.New64a()
	var b [8]byte
	for _, t := range prompt {
		binary.LittleEndian.PutUint32(b[:4], t)
		h.Write(b[:4])
	}
	binary.LittleEndian.PutUint64(b[:], uint64(index))
	h.Write(b[:])
	return h.Sum64()
}
