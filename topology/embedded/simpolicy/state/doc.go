// Package state keeps what simpolicy's trainer must not lose: parameters, optimizer,
// policy version, the answers given to StepBatches and the position in ppo-batches,
// all in one file per run.
//
// Reads and writes DIR/RUN.json; holds a lock on DIR/RUN.lock while open.
//
// Promises: Save is atomic and durable (a new file, synced, renamed, its directory
// synced): after a crash Load returns the state before or after, never a mixture; a
// state written by a newer version is refused and left as it is.
package state
