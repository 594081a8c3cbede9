// Package policy is the policy itself: a stand-in for a language model on a GPU.
//
// It is a probabilistic grammar over strategies. A turn's text is written by a plain
// function (strategy.go) that at some places chooses between texts. A choice of a
// trainable site has a softmax over that site's logits; a choice that stands for
// skill (doing sums in one's head) has fixed odds; everything between choices is
// certain. Choices are made token by token: the probability of a token is the mass of
// all texts that go on with it over the mass of all texts still possible, so every
// sampled token has a true logprob, and the logprobs of a choice's tokens add up to
// the logprob of the text chosen.
//
// The same function reads a turn back: where tokens are given instead of drawn, the
// walk follows them. So the logprob of a recorded turn under other parameters, and
// its gradient, come from the code that sampled it; so does the continuation of a
// turn that was interrupted.
//
// Reads: prompt tokens in the form of package chat, worked solutions (package
// worked). The policy never sees a reference answer as such: it runs the solution's
// program, through the code interpreter, and reads the observation.
//
// Promises: pure (no clock, no goroutines, randomness is handed in); the same draws
// give the same tokens; Score of sampled tokens under the same parameters and
// temperature returns bit-equal logprobs.
package policy
