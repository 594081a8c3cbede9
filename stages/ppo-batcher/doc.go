// Command ppo-batcher packs each step's trajectories into micro-batches for a trainer.
//
// Reads grouped, and policy-updates by broadcast, which say where the trainer is; writes
// ppo-batches: for every step that is closed one StepBatch, with count 0 if there is
// nothing to train on, and its micro-batches behind it. Promises: each step is batched
// exactly once, whatever is killed; what is not packed is named with its reason; the
// gradients of a step's micro-batches add up to the mean over its data.
//
// The machine turns records into effects; package step has the rules of a step, package
// datum makes training arrays of a trajectory, package microbatch packs them.
package main
