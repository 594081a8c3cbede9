// Package mathverify decides whether two mathematical answers mean the same.
//
// It reads a reference and a prediction, each LaTeX, plain text or a mixture,
// up to a whole response with a \boxed{…} in it, and returns a Verdict: equal,
// different or undecided, with the method that decided, a reason and the two
// readings as understood.
//
// # What decides
//
// From cheap to dear: the normalised texts; the shape of the readings; exact
// rationals; evaluation in two prime fields, which settles polynomials, rational
// functions and integers of any size (towers are never written out); ball
// arithmetic, for constants at rising precision and for functions at random
// points. A difference is always proved: in a field, or by a ball that excludes
// zero. Equality beyond the rationals rests on agreement in both fields, or to
// at least 128 binary places, more for longer texts.
//
// # Conventions of both profiles
//
//   - A decimal counts to Options.Decimals decimals (6): 1/3 is 0.3333333 but not
//     0.3333. Everything written without a decimal point is exact.
//   - A unit or a sign of degrees left out on one side is no difference.
//   - \log is the logarithm to base 10. Variables are real unless i occurs; a
//     point at which a side is not real says nothing, so 8 ln x equals ln x^8.
//   - Lists and sets have no order and no repetitions; (a, b) and [a, b] have.
//   - "x = 5", "f(x) = 5", "AB = 5" and "x + y = 5" are read as 5 beside a value.
//   - \frac12 is a half, 3\frac12 is three and a half, \sqrt12 the root of 12,
//     2^53 has the exponent 53, 1,234 is one number unless the two agree as lists.
//
// # Where the profiles differ
//
//	family                          Sound                        Compat
//	decimals below 0.001            tolerance shrinks            equal to 6 decimals
//	312 against 312.0000001         equal to 6 decimals          different: integers are exact
//	28% against 28                  equal (sign left out)        different
//	5 cm against 5 m                different                    equal: units are dropped
//	x = 41 = 42 against 42          different: the chain lies    equal: the last side counts
//	x in S against an inequality    compared as sets             different, unless
//	                                                             SetAgainstInequality is set
//	\boxed{1} … final answer is 2   the box, unless the          the sentence
//	                                sentence comes after it
//	\( a formula over lines \)      read                         not read
//
// It promises to be deterministic (budgets count steps, never time; random
// points derive from the inputs), never to panic, and to bound time and memory
// whatever the text says. It knows nothing of Kafka, files or clocks.
package mathverify
