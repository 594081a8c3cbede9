package main

import (
	"context"
	"errors"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/sampler/inference"
)

// errClosed: the group of a record is closed, so that nothing waits for the record.
var errClosed = errors.New("the group is closed")

const (
	// mostWords bounds how many of the servers' words for versions are kept per run.
	mostWords = 256
	// mostSteps bounds how many finished steps are kept per run; unfinished work of older
	// ones is not to be expected.
	mostSteps = 4096
)

// policies knows, per run, which version of the policy there is, where to sample it and
// which steps are done, as policy-updates says. An update speaks for its own run alone.
type policies struct {
	mu       sync.Mutex
	fallback []inference.Endpoint
	runs     map[string]*run
}

// run is what is known of one run.
type run struct {
	newest *sluicev1.PolicyUpdate
	// words maps what inference servers call a version to the version.
	words map[string]uint32
	done  map[uint64]bool
	// working are the contexts of records in hand, by step and incarnation.
	working map[*work]struct{}
}

// work is one record in hand.
type work struct {
	incarnation uint32
	step        uint64
	cancel      context.CancelCauseFunc
}

func newPolicies(fallback []inference.Endpoint) *policies {
	return &policies{fallback: fallback, runs: map[string]*run{}}
}

func (p *policies) run(id string) *run {
	r := p.runs[id]
	if r == nil {
		r = &run{words: map[string]uint32{}, done: map[uint64]bool{}, working: map[*work]struct{}{}}
		p.runs[id] = r
	}
	return r
}

// update takes a policy update; one that is older than what is known changes nothing but
// that its step is done. A later incarnation wins whatever its step: the trainer has
// rolled back.
func (p *policies) update(u *sluicev1.PolicyUpdate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.run(u.GetRunId())
	if u.GetIncarnation() < r.newest.GetIncarnation() {
		return
	}
	if u.GetIncarnation() > r.newest.GetIncarnation() {
		// Its steps are made anew, and its versions may be others of the same name.
		clear(r.done)
		clear(r.words)
	}
	if len(r.done) >= mostSteps || len(r.words) >= mostWords {
		clear(r.done)
		clear(r.words)
	}
	r.done[u.GetStep()] = true
	if w := u.GetServerVersion(); w != "" {
		r.words[w] = u.GetPolicyVersion()
	}
	if r.newest == nil || u.GetIncarnation() > r.newest.GetIncarnation() || u.GetStep() >= r.newest.GetStep() {
		r.newest = whereItWas(u, r.newest)
	}
	for w := range r.working {
		if r.over(w.incarnation, w.step) {
			w.cancel(errClosed)
		}
	}
}

// whereItWas is an update with the address and the model of the one before it in its
// incarnation, where it names none itself.
func whereItWas(u, before *sluicev1.PolicyUpdate) *sluicev1.PolicyUpdate {
	if u.GetIncarnation() != before.GetIncarnation() {
		return u
	}
	u = proto.CloneOf(u)
	if u.GetInferenceUrl() == "" {
		u.InferenceUrl = before.GetInferenceUrl()
	}
	if u.GetModel() == "" {
		u.Model = before.GetModel()
	}
	return u
}

// over says whether a step is done with: answered by the trainer, or rolled back.
func (r *run) over(incarnation uint32, step uint64) bool {
	return incarnation < r.newest.GetIncarnation() || incarnation == r.newest.GetIncarnation() && r.done[step]
}

// work gives the context in which to work on a record of a group: it ends, with errClosed
// as its cause, once the group's step is done.
func (p *policies) work(ctx context.Context, g identity.Group) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &work{g.Incarnation, g.Step, cancel}
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.run(g.RunID)
	if r.over(g.Incarnation, g.Step) {
		cancel(errClosed)
	}
	r.working[w] = struct{}{}
	return ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(r.working, w)
		cancel(nil)
	}
}

// of is where to sample a run's policy and its version: 0 before its first update.
func (p *policies) of(runID string) ([]inference.Endpoint, uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := p.run(runID).newest
	if u.GetInferenceUrl() == "" && u.GetModel() == "" {
		return p.fallback, u.GetPolicyVersion()
	}
	eps := append([]inference.Endpoint(nil), p.fallback...)
	if u.GetInferenceUrl() != "" {
		eps = []inference.Endpoint{{URL: u.GetInferenceUrl(), Model: p.fallback[0].Model}}
	}
	if u.GetModel() != "" {
		for i := range eps {
			eps[i].Model = u.GetModel()
		}
	}
	return eps, u.GetPolicyVersion()
}

// version is what a server's word stands for in a run.
func (p *policies) version(runID, word string) (uint32, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v, ok := p.run(runID).words[word]
	return v, ok
}

// elsewhere says whether some run is sampled at another address, or as another model,
// than the flags name.
func (p *policies) elsewhere() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.runs {
		if r.newest.GetInferenceUrl() != "" || r.newest.GetModel() != "" {
			return true
		}
	}
	return false
}
