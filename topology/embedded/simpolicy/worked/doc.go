// Package worked turns worked solutions of word problems into programs.
//
// It reads rows {question, answer} in GSM8K's form, where the answer is prose with
// calculator marks such as <<48/2=24>> and ends with a line "#### 72". Each mark
// becomes one assignment of a Python program.
//
// Promises: a Solution's program computes exactly what the marks say, with exact
// rational arithmetic as the check, and its last value is the reference; a row for
// which that does not hold is refused by Parse with the reason, never repaired.
package worked
