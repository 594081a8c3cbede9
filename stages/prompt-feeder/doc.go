// Command prompt-feeder feeds problems, step by step, into the pipeline.
//
// Reads: a prepared problem file (`prompt-feeder prepare` makes one) and the topic
// policy-updates (broadcast).
//
// Writes: prompts, one record per slot of a step, keyed by question id.
//
// Promises: which problem stands in which slot follows from file, seed and step alone,
// so a run can be repeated; memory does not grow with the file; with sync pacing a step
// is fed when the trainer has answered the one before, so that all trajectories are
// sampled by the policy they train; after a restart it goes on behind the last answered
// step and feeds only the slots that are not in the topic yet; a policy update of a
// later incarnation moves it to the step after the one that update names.
package main
