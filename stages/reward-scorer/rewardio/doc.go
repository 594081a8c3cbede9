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
// are still read.
//
// Lines that are there to read are answered together: 64 of them, or as many as the reward
// that takes the largest batch (kind http) asks for, and no more once they hold 8 MiB.
// Whatever was read is answered before another line is waited for, unless its beginning was
// read too; so a line that is typed has its answer at once. A file gives full batches; of a
// program that writes whole lines, a pipe holds 64 KiB, which may be few long ones.
//
// Both return how many lines could not be read, ScoreLines also on how many the reward
// failed, and an error only if reading or writing fails.
package rewardio
