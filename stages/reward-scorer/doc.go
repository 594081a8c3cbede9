// Command reward-scorer gives finished trajectories their rewards.
//
// Reads trajectories; writes scored: the trajectory with every reward, the answer found
// and the verdict on it. Promises: each copy of a trajectory is scored exactly once,
// whatever is killed; what infrastructure or protocol broke, or the reward fails on, is
// passed on ungraded and never bears a reward.
//
// Scoring is done before a batch's transaction begins, on all processors (prepare.go); the
// machine writes the results. Package scoring joins trajectory and reward, package reward
// has the rewards, package boxed finds the answer, package mathverify compares it. The
// commands check and score do the same by hand, without a broker.
package main
