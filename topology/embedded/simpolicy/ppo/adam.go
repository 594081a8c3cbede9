package ppo

import (
	"math"

	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/policy"
)

// Adam's usual constants; epsilon is small because a mean over tokens makes small
// gradients.
const (
	beta1   = 0.9
	beta2   = 0.99
	epsilon = 1e-8
)

// Optimizer is Adam's state.
type Optimizer struct {
	// Steps taken so far.
	Steps int
	// First and Second are the moments, shaped as the parameters.
	First, Second policy.Parameters
}

// NewOptimizer has taken no step.
func NewOptimizer() Optimizer { return Optimizer{First: policy.Zeros(), Second: policy.Zeros()} }

func (o Optimizer) clone() Optimizer {
	return Optimizer{Steps: o.Steps, First: o.First.Clone(), Second: o.Second.Clone()}
}

// apply takes one step against the gradient.
func (o *Optimizer) apply(rate float64, params, gradient policy.Parameters) {
	o.Steps++
	c1 := 1 - math.Pow(beta1, float64(o.Steps))
	c2 := 1 - math.Pow(beta2, float64(o.Steps))
	for s, site := range gradient {
		for i, g := range site {
			m, v := &o.First[s][i], &o.Second[s][i]
			*m = beta1**m + (1-beta1)*g
			*v = beta2**v + (1-beta2)*g*g
			params[s][i] -= rate * (*m / c1) / (math.Sqrt(*v/c2) + epsilon)
		}
	}
}
