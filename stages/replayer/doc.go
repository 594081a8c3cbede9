// Command replayer runs what was recorded through another reward; `sluice replay` starts
// it.
//
// Reads scored or trajectories, and grouped and ppo-batches for what became of them, or
// an archive of them; writes scored, grouped and ppo-batches of a namespace of its own,
// or an archive. Promises: the original is never touched; membership is what was
// recorded; equal input and configuration give equal bytes; interrupted, the same command
// goes on.
//
// Package replay has the rules, without a clock or a broker; package perform reads,
// writes and keeps the checkpoint.
package main
