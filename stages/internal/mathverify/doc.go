// Package mathverify decides whether two mathematical answers mean the same.
//
// It reads a reference and a prediction, each LaTeX, plain text or a mixture,
// up to a whole response with a \boxed{…} in it, and returns a Verdict: equal,
// different or undecided, with the method that decided, a reason and the two
// readings as understood.
//
// It promises to be deterministic (budgets count steps, never time; random
// points derive from the inputs), never to panic, and to bound time and memory
// whatever the text says. It is symmetric in its two arguments and knows
// nothing of Kafka, files or clocks.
package mathverify
