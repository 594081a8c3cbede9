// Package custody shows that what is trained on is what was sampled.
//
// Each turn bears a digest over its token ids, which of them were sampled, the bits of
// their logprobs and their policy versions, chained to the turn before. Whoever changes
// a turn Seals it; whoever takes a trajectory over, trains on it or replays it Checks
// it. What exactly the digest is over stands at Turn.digest in trajectory.proto.
//
// It finds what goes wrong between stages and in storage. It is no signature: who can
// write records can seal them.
package custody
