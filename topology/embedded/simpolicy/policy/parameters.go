package policy

import (
	"errors"
	"fmt"
	"math"
)

// ErrParameters: stored parameters do not fit the sites of this build.
var ErrParameters = errors.New("parameters do not fit this policy")

// Site is one place where the policy chooses by trainable logits. Which site speaks
// depends on the context: the first turn, after an error, after a result.
type Site int

// The sites.
const (
	Opening Site = iota
	FirstPlan
	FirstCode
	CallForm
	AfterResult
	AfterError
	AfterErrors
	AfterSilence
	FixedCode
	HeadForm
	TextOpening
	TextForm
	UnknownPlan
	siteCount
	// noSite marks tokens that no trainable choice decides.
	noSite Site = -1
)

// choice is one option of a site and the probability it starts with.
type choice struct {
	name  string
	start float64
}

type siteSpec struct {
	name    string
	choices []choice
}

// The policy starts bad: it likes its head, forgets the box, breaks the form of
// calls, uses names it never defined and gives up on errors.
var sites = [siteCount]siteSpec{
	Opening:      {"opening", []choice{{"think", 0.4}, {"find", 0.3}, {"first", 0.3}}},
	FirstPlan:    {"first_plan", []choice{{"head", 0.55}, {"code", 0.45}}},
	FirstCode:    {"first_code", []choice{{"right", 0.34}, {"name_error", 0.36}, {"syntax_error", 0.10}, {"wrong_value", 0.10}, {"silent", 0.10}}},
	CallForm:     {"call_form", []choice{{"one_call", 0.76}, {"two_calls", 0.08}, {"unclosed", 0.08}, {"text_after", 0.08}}},
	AfterResult:  {"after_result", []choice{{"box", 0.58}, {"no_box", 0.22}, {"distrust", 0.12}, {"check", 0.08}}},
	AfterError:   {"after_error", []choice{{"fix", 0.25}, {"guess", 0.35}, {"give_up", 0.30}, {"same_again", 0.10}}},
	AfterErrors:  {"after_errors", []choice{{"fix", 0.25}, {"guess", 0.35}, {"give_up", 0.35}, {"same_again", 0.05}}},
	AfterSilence: {"after_silence", []choice{{"fix", 0.30}, {"guess", 0.35}, {"give_up", 0.35}}},
	FixedCode:    {"fixed_code", []choice{{"right", 0.50}, {"name_error", 0.20}, {"syntax_error", 0.10}, {"wrong_value", 0.15}, {"silent", 0.05}}},
	HeadForm:     {"head_form", []choice{{"box", 0.55}, {"no_box", 0.45}}},
	TextOpening:  {"text_opening", []choice{{"think", 0.4}, {"find", 0.3}, {"first", 0.3}}},
	TextForm:     {"text_form", []choice{{"box", 0.60}, {"no_box", 0.40}}},
	UnknownPlan:  {"unknown_plan", []choice{{"guess", 0.60}, {"admit", 0.40}}},
}

// Name is the site's name in saved states and on the policy page.
func (s Site) Name() string { return sites[s].name }

// Choices are the names of the site's options, in the order of its logits.
func (s Site) Choices() []string {
	names := make([]string, len(sites[s].choices))
	for i, c := range sites[s].choices {
		names[i] = c.name
	}
	return names
}

// Sites lists all sites.
func Sites() []Site {
	all := make([]Site, siteCount)
	for i := range all {
		all[i] = Site(i)
	}
	return all
}

// Parameters are the logits, by site and choice.
type Parameters [][]float64

// Zeros are parameters of the right shape, all 0: for gradients and moments.
func Zeros() Parameters {
	p := make(Parameters, siteCount)
	for s := range p {
		p[s] = make([]float64, len(sites[s].choices))
	}
	return p
}

// Initial are the parameters that the policy starts from.
func Initial() Parameters {
	p := Zeros()
	for s := range p {
		for i, c := range sites[s].choices {
			p[s][i] = math.Log(c.start)
		}
	}
	return p
}

// Clone copies.
func (p Parameters) Clone() Parameters {
	q := make(Parameters, len(p))
	for s := range p {
		q[s] = append([]float64(nil), p[s]...)
	}
	return q
}

// Probabilities is the softmax of one site.
func (p Parameters) Probabilities(s Site) []float64 {
	out := make([]float64, len(p[s]))
	z := logSumExp(p[s])
	for i, l := range p[s] {
		out[i] = math.Exp(l - z)
	}
	return out
}

// Named gives the logits by the names of site and choice, the form they are saved in.
func (p Parameters) Named() map[string]map[string]float64 {
	named := map[string]map[string]float64{}
	for s := range p {
		m := map[string]float64{}
		for i, c := range sites[s].choices {
			m[c.name] = p[s][i]
		}
		named[sites[s].name] = m
	}
	return named
}

// FromNamed reads what Named wrote. A site or choice that is missing, unknown or not
// finite is an error that wraps ErrParameters and names it.
func FromNamed(named map[string]map[string]float64) (Parameters, error) {
	p := Zeros()
	if len(named) != len(sites) {
		return nil, fmt.Errorf("%w: %d sites, want %d", ErrParameters, len(named), len(sites))
	}
	for s, spec := range sites {
		m, ok := named[spec.name]
		if !ok || len(m) != len(spec.choices) {
			return nil, fmt.Errorf("%w: site %q has %d choices, want %d", ErrParameters, spec.name, len(m), len(spec.choices))
		}
		for i, c := range spec.choices {
			v, ok := m[c.name]
			if !ok || math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, fmt.Errorf("%w: site %q, choice %q: %v (found: %t), want a finite number", ErrParameters, spec.name, c.name, v, ok)
			}
			p[s][i] = v
		}
	}
	return p, nil
}

func logSumExp(z []float64) float64 {
	top := math.Inf(-1)
	for _, v := range z {
		top = max(top, v)
	}
	if math.IsInf(top, -1) {
		return top
	}
	var sum float64
	for _, v := range z {
		sum += math.Exp(v - top)
	}
	return top + math.Log(sum)
}
