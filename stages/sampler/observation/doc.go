// Package observation makes the text that the policy sees of one run of its program.
//
// It reads an Execution (outcome, exit code, streams) and promises: stdout on success,
// the raw stderr on failure, a fixed text for everything else (or, if asked for, what a
// program that ran too long had printed before it); each stream's last
// StreamLimit characters behind a marker; no added token of the tokenizer in it, so
// that a program's output can never speak as another role; and a way of shrinking
// that always ends. Characters are code points. Pure: no I/O, no clock.
package observation
