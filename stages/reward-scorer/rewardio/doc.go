// Package rewardio is the line-oriented face of rewards, for people and
// scripts.
//
// ScoreLines reads lines {"id", "text", "reference"} and writes {"id", "scorer", "version",
// "reward", "correct", "valid_format", "answer", "verdict", "method", "reason",
// "gold_read", "pred_read"} and, if the set has more rewards, "others". A reference may be
// a number. Lines are read and answered as package jsonlines says, in batches of 64, or as
// many as the reward that takes the largest batch (kind http) asks for. Rewards are bounded
// as the stage bounds them.
//
// It returns how many lines could not be read, on how many the reward failed, and an error
// only if reading or writing fails.
package rewardio
