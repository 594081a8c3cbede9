package main

import (
	"cmp"

	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/stages/internal/horizon"
)

// keyOf is a group's key in the changelog, the form people read in logs too.
func keyOf(g identity.Group) string { return g.String() }

func parseKey(key string) (identity.Group, error) {
	p, err := identity.ParsePlace(key + "/0")
	return p.Group, err
}

func runOf(g identity.Group) horizon.Run {
	return horizon.Run{ID: g.RunID, Incarnation: g.Incarnation}
}

func compareGroups(a, b identity.Group) int {
	return cmp.Or(
		cmp.Compare(a.RunID, b.RunID), cmp.Compare(a.Incarnation, b.Incarnation),
		cmp.Compare(a.Step, b.Step), cmp.Compare(a.Slot, b.Slot),
	)
}
