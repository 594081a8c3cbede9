// Package rollout is the state machine of one trajectory: what to ask for next, and
// what the answer changes.
//
// It reads completions, executions and tokens, and writes one sluicev1.Trajectory. It
// promises:
//
//   - Token in, token out: text that the policy sampled is never encoded again. The
//     next prompt is all tokens so far, the closing tokens that were not sampled, and
//     the observation's; every prompt begins with all that was sent and sampled
//     before.
//   - Lengths agree: each sampled token has its logprob and its policy version, or the
//     trajectory ends as protocol_fault with the lengths named.
//   - Custody: each turn bears a digest of its arrays (schemas/custody), which is checked
//     where a trajectory is taken up again; a broken one is a protocol_fault too.
//   - Every trajectory ends, for one typed reason, within its budgets.
//
// What a caller must do:
//
//  1. Start a rollout for each member of a group, or Resume one from its record.
//  2. Ask Next. Do what it says: Sample (generate), Call (run the program), Observe
//     (render and tokenise the observation), or End.
//  3. Give the answer to Sampled, Executed or Observed, and ask Next again. A rollout
//     may leave the process only when Next says Call: the trajectory then travels
//     whole, and whoever has the execution goes on with it.
//  4. Where the world fails for good, GiveUp; where the policy's server refuses to go on,
//     Refuse; where what it does cannot be trained on, Fault. None of them is graded.
//
// The first Sample is the same for all members of a group: ask for it once, with as
// many completions as there are members.
//
// Pure: no I/O, no goroutines, no clock, no randomness; times and copies are given.
package rollout
