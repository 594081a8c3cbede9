// Package gsm8k holds a sample of 400 problems of GSM8K's test split, in their
// original {question, answer} form, with the licence they stand under (MIT, file
// LICENSE). Source: "Training Verifiers to Solve Math Word Problems", Cobbe and
// others, 2021.
//
// Promises: every row is as published; the calculator marks of every row, run in
// order as a program, give exactly the results written in them and in the end the
// reference after ####. Rows whose marks do not were left out.
package gsm8k

import (
	_ "embed"
)

// Sample is the problems, one JSON object a line.
//
//go:embed sample.jsonl
var Sample []byte

// License is the licence of Sample.
//
//go:embed LICENSE
var License string
