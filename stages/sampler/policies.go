package main

import (
	"sync"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/sampler/inference"
)

// policies knows, per run, which version of the policy there is and where to sample
// it, as policy-updates says.
type policies struct {
	mu       sync.Mutex
	fallback inference.Endpoint
	runs     map[string]*sluicev1.PolicyUpdate
	// latest is where the last update of any run points; its zero value: nowhere.
	latest inference.Endpoint
}

func newPolicies(fallback inference.Endpoint) *policies {
	return &policies{fallback: fallback, runs: map[string]*sluicev1.PolicyUpdate{}}
}

// update takes a policy update; one that is older than what is known changes nothing.
// A later incarnation wins whatever its step: the trainer has rolled back.
func (p *policies) update(u *sluicev1.PolicyUpdate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.runs[u.GetRunId()]
	if known != nil && (u.GetIncarnation() < known.GetIncarnation() ||
		u.GetIncarnation() == known.GetIncarnation() && u.GetStep() < known.GetStep()) {
		return
	}
	p.runs[u.GetRunId()] = u
	p.latest = p.endpoint(u)
}

// of is where to sample a run's policy and its version: 0 before its first update.
func (p *policies) of(runID string) (inference.Endpoint, uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := p.runs[runID]
	return p.endpoint(u), u.GetPolicyVersion()
}

// current is where the last update points, else where the flags do.
func (p *policies) current() inference.Endpoint {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.latest.URL != "" {
		return p.latest
	}
	return p.fallback
}

// named fills in the model that the server at the flags' address was found to have.
func (p *policies) named(model string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fallback.Model == "" {
		p.fallback.Model = model
	}
}

// endpoint is what an update says, what it leaves out taken from the flags.
func (p *policies) endpoint(u *sluicev1.PolicyUpdate) inference.Endpoint {
	ep := p.fallback
	if u.GetInferenceUrl() != "" {
		ep.URL = u.GetInferenceUrl()
	}
	if u.GetModel() != "" {
		ep.Model = u.GetModel()
	}
	return ep
}
