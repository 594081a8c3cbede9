// Package identity names places in the work and derives everything that must be
// the same each time it is derived: ids, keys and seeds.
//
// A place is run.incarnation/step/slot/sample index. Work done twice bears the same
// place and differs in its copy, a random number drawn at a trajectory's first turn.
// Nothing here may be joined or cached by place alone where content matters: take
// place and copy.
package identity
