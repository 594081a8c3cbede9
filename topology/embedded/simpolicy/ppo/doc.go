// Package ppo trains the parameters of package policy on one StepBatch.
//
// The loss is PPO's clipped surrogate. With r = exp(new logprob - behaviour logprob)
// of a policy token and A its advantage, the token's loss is
// -min(r A, clip(r, low, high) A), the bounds as the batch names them. A datum's
// loss is the sum or the mean over its policy tokens, as the batch names it; a
// micro-batch's is the mean over its data; the step's is the sum over micro-batches.
// The advantages come scaled by (data in the micro-batch / N), so that is the mean
// over N. Each epoch is one step of Adam on the gradient of all micro-batches.
//
// What a token's choice has no say in (prompt, glue, observation) has a loss mask of
// false and is never looked at; text that is certain has ratio 1 and gradient 0.
// Policy tokens that the grammar cannot write are counted as foreign and left out.
//
// Promises: pure; the same input gives the same output; with unchanged parameters
// every ratio is exactly 1; input parameters are not changed.
package ppo
