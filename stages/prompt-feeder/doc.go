// Command prompt-feeder feeds problems, step by step, into the pipeline.
//
// Reads: a prepared problem file (`prompt-feeder prepare` makes one) and the topics
// policy-updates and runs (broadcast).
//
// Writes: prompts, one record per slot of a step, keyed by question id; runs: what the run
// is, and with the prompts of a step, in one transaction, that it is fed; dead-letters, for
// what cannot be read of the topics that it follows.
//
// Promises: which problem stands in which slot follows from file, seed and step alone,
// so a run can be repeated; memory does not grow with the file; with sync pacing a step
// is fed when the trainer has answered the one before, so that all trajectories are
// sampled by the policy they train; a step is fed whole and once, whatever is killed and
// however many feeders are started: the later one fences the earlier; no decision rests on
// another machine's clock; a policy update of a later incarnation moves it to the step
// after the one that update names; a run is not gone on with under other settings; a
// RunStop ends it, with an error.
package main
