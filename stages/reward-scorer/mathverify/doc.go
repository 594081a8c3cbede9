// Package mathverify decides whether two mathematical answers mean the same.
//
// It reads a reference and a prediction, each LaTeX, plain text or a mixture,
// up to a whole response with a \boxed{…} in it, and returns a Verdict: equal,
// different or undecided, with the method that decided, a reason and the two
// readings as understood. README.md has the conventions, beside those of
// Math-Verify.
//
// # The map
//
//	what is read, and what is not     internal/reading: the lexer, phrases, the parser, the lexicon, units
//	what of a response counts         internal/finding
//	the tree that is read             internal/expr
//	how values are calculated         internal/evaluation: rationals, prime fields, balls
//	what is the same, and profiles    internal/deciding
//	JSON lines, command, server       check, cmd/mathverify
//
// # What it promises
//
// A difference is always proved: in a field, or by a ball that excludes zero.
// What is not read or not calculated is undecided, and so is what stands beside
// words that are not understood. Verdicts are deterministic (budgets count steps,
// never time; random points derive from the inputs) and the same in both
// directions; nothing panics; time and memory are bounded whatever the text says.
// It knows nothing of Kafka, files or clocks.
package mathverify
