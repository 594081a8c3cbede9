// Command sampler drives trajectories: it asks the policy for every turn.
//
// Reads prompts and code-results (code-results first), and policy-updates by broadcast;
// writes code-calls and trajectories. Promises: the first turns of a group are one
// request; a trajectory goes on wherever its last event lies, whichever sampler picks it
// up; every sampled token bears the version that sampled it; nothing is asked of the
// policy before all policy updates so far have been read; what its servers get wrong ends
// a trajectory ungraded, within a budget per turn, and never as an answer; what a finished
// run left behind decides nothing for others.
//
// It is a thin client with hundreds of requests in flight: the rules are in package
// rollout, the dialects in package inference, the reading and writing in package kafka.
package main
