// Package rewardio is the line-oriented face of rewards, for people and
// scripts.
//
// Check reads lines {"id", "gold", "pred"} and writes, in order, lines {"id",
// "verdict", "method", "reason", "gold_read", "pred_read", "micros"}. ScoreLines
// reads lines {"id", "text", "reference"} and writes {"id", "scorer", "version",
// "reward", "correct", "valid_format", "answer", "verdict", "method", "reason",
// "gold_read", "pred_read"} and, if the set has more rewards, "others". A line that cannot be read is answered
// in its place with {"id", "error"}; the lines behind it are still read. Both
// return how many lines that were, and an error only if reading or writing
// fails.
package rewardio
