package main

import (
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/sampler/inference"
	"github.com/sluice-rl/sluice/stages/sampler/rollout"
)

// versionsOf says which policy versions sampled a completion, and how that is known.
// declared is the newest version that policy-updates had named when it was asked for,
// which is the oldest that can have been live while it ran.
func (p *policies) versionsOf(runID string, declared uint32, r inference.Response, c inference.Choice) ([]rollout.Versions, sluicev1.VersionSource) {
	all := func(v uint32) []rollout.Versions {
		if len(c.Tokens) == 0 {
			return nil
		}
		return []rollout.Versions{{Version: v, Count: len(c.Tokens)}}
	}
	switch {
	case r.HasVersion:
		return all(r.PolicyVersion), sluicev1.VersionSource_VERSION_SOURCE_GIVEN
	case len(c.Versions) > 0:
		vs := make([]rollout.Versions, len(c.Versions))
		for i, span := range c.Versions {
			v, ok := p.version(runID, span.Word)
			if !ok {
				return all(declared), sluicev1.VersionSource_VERSION_SOURCE_UNKNOWN
			}
			vs[i] = rollout.Versions{Version: v, Count: span.Count}
		}
		return vs, sluicev1.VersionSource_VERSION_SOURCE_GIVEN
	case r.Version != "":
		v, ok := p.version(runID, r.Version)
		if !ok {
			return all(declared), sluicev1.VersionSource_VERSION_SOURCE_UNKNOWN
		}
		return all(min(v, declared)), sluicev1.VersionSource_VERSION_SOURCE_SINGLE
	}
	return all(declared), sluicev1.VersionSource_VERSION_SOURCE_DECLARED
}
