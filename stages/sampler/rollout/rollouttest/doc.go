// Package rollouttest drives rollouts in tests: a tokenizer of one token per byte, a
// small chat template, and a script that plays policy and executor.
//
// Reference reads one row of whole scripted batches as the trainers' own functions
// recorded them (turns, executions, observations) and replays it through package
// rollout, so that a test can compare every trajectory, and whoever grades and packs
// trajectories can take them from here.
package rollouttest
