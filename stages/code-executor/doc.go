// Command code-executor runs the programs that the policy wrote.
//
// Reads code-calls from a share group; writes code-results, and trajectories that it had
// to give up. Promises: a call is taken only when a sandbox is reserved for it; it runs
// in that sandbox alone; a sandbox's own failure is never shown to the policy but
// retried in a fresh one, and in the end the trajectory ends as infra_error; the
// program's time never includes waiting.
//
// One slot is one member of the share group, one reservation at sandboxd and one record
// in hand.
package main
