package policy

import (
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/chat"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/worked"
)

// observed is what a tool's answer amounts to.
type observed int

const (
	observedNumber observed = iota
	observedError
	observedSilence
)

// situation is what the policy understands of a prompt.
type situation struct {
	question string
	solution *worked.Solution // nil: it has no solution for the question
	tool     bool
	// thinking: the generation prompt left a thought open.
	thinking bool
	// calls are the programs run since the question, oldest first.
	calls []pastCall
	// given are the tokens of the turn at hand that are already written.
	given []uint32
}

type pastCall struct {
	observation string
	kind        observed
	// number is the observation's last line where kind is observedNumber.
	number string
	// program is what was run.
	program string
}

func (s *situation) last() *pastCall {
	if len(s.calls) == 0 {
		return nil
	}
	return &s.calls[len(s.calls)-1]
}

// errors counts the calls whose observation was an error.
func (s *situation) errors() int {
	n := 0
	for _, c := range s.calls {
		if c.kind == observedError {
			n++
		}
	}
	return n
}

// read understands a prompt. Tokens outside the vocabulary are an error.
func (p *Policy) read(prompt []uint32) (situation, error) {
	var s situation
	var turn string
	starts := indices(prompt, p.start)
	if len(starts) == 0 {
		text, err := p.tok.Text(prompt)
		if err != nil {
			return s, err
		}
		s.question = text
		s.solution = p.library.Find(text)
		return s, nil
	}
	for k, from := range starts {
		to := len(prompt)
		if k+1 < len(starts) {
			to = starts[k+1]
		}
		body := prompt[from+1 : to]
		closed := slices.Index(body, p.eos)
		if closed < 0 && k+1 == len(starts) && p.open(&s, body) {
			break
		}
		if closed >= 0 {
			body = body[:closed]
		}
		text, err := p.tok.Decode(body)
		if err != nil {
			return s, err
		}
		role, content, _ := strings.Cut(text, "\n")
		switch {
		case role == "system":
			s.tool = strings.Contains(content, "<tools>")
		case role == "user" && strings.HasPrefix(content, "<tool_response>\n"):
			s.calls = append(s.calls, observe(content, turn))
		case role == "user":
			s.question, s.calls = content, nil
		case role == "assistant":
			turn = content
		}
	}
	if _, err := p.tok.Decode(s.given); err != nil {
		return s, err
	}
	s.solution = p.library.Find(s.question)
	return s, nil
}

// open reads the assistant's turn that is being written: the generation prompt, then
// what is already there. It returns false if it is no such turn.
func (p *Policy) open(s *situation, body []uint32) bool {
	for _, head := range p.heads {
		if len(body) >= len(head.tokens) && slices.Equal(body[:len(head.tokens)], head.tokens) {
			s.thinking = head.thinking
			s.given = body[len(head.tokens):]
			return true
		}
	}
	return false
}

// head is one way a generation prompt may look after <|im_start|>.
type head struct {
	tokens   []uint32
	thinking bool
}

func (p *Policy) makeHeads() []head {
	after := func(text string) []uint32 { return p.tok.Encode(text)[1:] }
	return []head{
		{after(chat.GenerationPrompt(false)), false},
		{after(chat.GenerationPrompt(true)), true},
		{after("<|im_start|>assistant\n"), false},
	}
}

func observe(content, turn string) pastCall {
	text := strings.TrimPrefix(content, "<tool_response>\n")
	text, _, _ = strings.Cut(text, "\n</tool_response>")
	c := pastCall{observation: text, program: programIn(turn)}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	last := strings.TrimSpace(lines[len(lines)-1])
	switch {
	case last == "":
		c.kind = observedSilence
	case numberOf(last) != nil:
		c.kind, c.number = observedNumber, worked.Decimal(numberOf(last))
	default:
		c.kind = observedError
	}
	return c
}

// numberOf reads a number as Python prints it; nil if it is none.
func numberOf(s string) *big.Rat {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) || strings.ContainsAny(s, "_xXpP") {
		return nil
	}
	if strings.ContainsAny(s, "eE") {
		// Exact reading would let a short text demand a huge number.
		return new(big.Rat).SetFloat64(f)
	}
	v, _ := new(big.Rat).SetString(s)
	return v
}

// programIn is the program that an assistant's turn called for.
func programIn(turn string) string {
	_, code, _ := strings.Cut(turn, "<parameter=code>\n")
	code, _, _ = strings.Cut(code, "\n</parameter>")
	return code
}

func indices(tokens []uint32, id uint32) []int {
	var at []int
	for i, t := range tokens {
		if t == id {
			at = append(at, i)
		}
	}
	return at
}
