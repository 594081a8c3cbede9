// Package mathverify decides whether two mathematical answers mean the same.
//
// It reads a reference and a prediction, each LaTeX, plain text or a mixture,
// up to a whole response with a \boxed{…} in it, and returns a Verdict: equal,
// different or undecided, with the method that decided, a reason and the two
// readings as understood.
//
// # What decides
//
// From cheap to dear: plain numbers and the normalised texts; the shape of the
// readings; exact rationals; evaluation in two fields of p² elements, which
// settles polynomials, rational functions, integers of any size (towers are
// never written out), square roots, complex numbers, and the exponential and
// trigonometric functions of linear arguments; ball arithmetic, for other
// constants at rising precision and for other functions at random points, which
// reach as far as the numbers in the texts if rounding, roots of sums or absolute
// values make them differ from place to place. A difference is always proved: in
// a field, or by a ball that excludes zero. Equality beyond the rationals rests
// on agreement in both fields, or to at least 128 binary places, more for longer
// texts and for finer numbers in them; where a part is finer than the highest
// precision the verdict is undecided.
//
// Finite sums of polynomials and geometric sums, integrals of polynomials,
// Dirichlet's integral and derivatives are calculated; an integral without
// bounds is compared by its derivative. Other integrals, infinite sums and
// products, and limits are estimated at two orders that must agree to 42 binary
// places, and count as equal to what agrees with the finer one to 84. They are
// never different, and undecided if they converge slowly or not at all.
//
// # Conventions of both profiles
//
//   - A decimal counts to Options.Decimals decimals (6): 1/3 is 0.3333333 but not
//     0.3333. Everything written without a decimal point is exact.
//   - A unit or a sign of degrees left out on one side is no difference. Words
//     that only remark are dropped ("about 5", "5 apples"), words that change a
//     value ("half of 5") and unknown functions are not.
//   - \log is the logarithm to base 10. Variables are real unless i occurs; a
//     point at which a side is not real says nothing, so 8 ln x equals ln x^8.
//   - Lists and sets have no order and no repetitions; (a, b) and [a, b] have.
//   - "x = 5", "f(x) = 5", "AB = 5", "sin A = 5" and "x + y = 5" are read as 5
//     beside a value.
//   - A finite sum or a power of -1 with a letter for its bound or exponent is
//     compared at whole values of the letter.
//   - Times of day are equal as times, other ratios as ratios.
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
//	gcd(a, b) of letters            of integers, unknown         of polynomials: 1
//
// # What is not read
//
// Bars that open inside bars without a sign between (||x||y||), numbers side by
// side, \char codes, inequalities of higher degree, f∘g, and equations that
// differ by a factor with variables (xy = 1 against y = 1/x). Conventions of
// other graders that neither profile follows: order in a list, decimals that
// agree to fewer than Decimals places, a unit that must be repeated, an answer
// that counts only in a box or only if spelled as the reference.
//
// It promises to be deterministic (budgets count steps, never time; random
// points derive from the inputs), never to panic, and to bound time and memory
// whatever the text says. It knows nothing of Kafka, files or clocks.
package mathverify
