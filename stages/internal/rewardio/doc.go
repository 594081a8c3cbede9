// Package rewardio is the line-oriented face of rewards, for people and
// scripts.
//
// Check reads lines {"id", "gold", "pred"} and writes, in order, lines {"id",
// "verdict", "method", "reason", "gold_read", "pred_read", "micros"}. ScoreLines
// reads lines {"id", "text", "reference"} and writes {"id", "scorer", "version",
// "reward", "correct", "valid_format", "answer", "verdict", "method", "reason",
// "gold_read", "pred_read"} and, if the set has more rewards, "others". A line that cannot
// be read (no such object, no UTF-8, half a surrogate pair, over 64 MiB) is answered in
// its place with {"id", "error"}, and id null where it was not read; the lines behind it
// are still read. Each answer is written before the next line is waited for. Both return
// how many lines could not be read, and an error only if reading or writing fails.
package rewardio
