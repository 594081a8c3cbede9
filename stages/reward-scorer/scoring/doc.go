// Package scoring turns a finished trajectory and a set of rewards into a Scored.
//
// It reads a Trajectory and a *reward.Set; it writes a Scored without a time: when it
// was scored is its caller's business. The reward-scorer uses it for what arrives, a
// replay for what was recorded, so that the same rewards give the same scores.
//
// It promises: a trajectory that infrastructure or protocol broke, and one on which the
// deciding reward fails, is ungraded with its reason and bears no reward; texts that
// explain a score are valid UTF-8 of bounded length; no reward that panics takes more
// with it than its own trajectory.
package scoring
