// Package deciding compares two readings.
//
// It looks at the shape of the readings, then at exact values, at both fields, at
// balls; other functions are compared at random points, which reach as far as the
// numbers in the texts if rounding, roots of sums or absolute values make them
// differ from place to place. Equality beyond the rationals rests on agreement in
// both fields, or to at least 128 binary places, more for longer texts and for
// finer numbers in them; where a part is finer than the highest precision the
// verdict is undecided. Estimates count as equal to what agrees with the finer one
// to 84 binary places, and are never different.
//
// # Conventions of both profiles
//
//   - A decimal counts to Decimals decimals (6): 1/3 is 0.3333333 but not 0.3333.
//     Everything written without a decimal point is exact.
//   - Variables are real unless i occurs; a point at which a side is not real says
//     nothing, so 8 ln x equals ln x^8.
//   - Lists and sets have no order and no repetitions; (a, b) and [a, b] have.
//   - Times of day are equal as times, other ratios as ratios.
//
// # Where the profiles differ
//
//	family                          Sound                        Compat
//	words that are not understood   undecided                    dropped, but for denials
//	decimals below 0.001            tolerance shrinks            equal to 6 decimals
//	312 against 312.0000001         equal to 6 decimals          different: integers are exact
//	28% against 28                  equal (sign left out)        different
//	0.5% against 0.5                different                    different
//	5 cm against 5 m                different, 500 cm is equal   equal: units are dropped
//	52_8 against 52, and 42         equal, undecided             different, equal
//	1, 2 against (1, 2)             undecided                    equal, in order
//	{{1},{2}} against {1,2}         different                    equal
//	(3, ∞] against (3, ∞)           different                    equal
//	x = 41 = 42 against 42          different: the chain lies    equal: the last side counts
//	x in S against an inequality    compared as sets             different, unless
//	                                                             SetAgainstInequality is set
//	\boxed{1} … final answer is 2   the box, unless the          the sentence
//	                                sentence comes after it
//	\( a formula over lines \)      read                         not read
//	gcd(a, b) of letters            of integers, unknown         of polynomials: 1
//
// # What is not decided
//
// Inequalities of higher degree, f∘g, and equations that differ by a factor with
// variables (xy = 1 against y = 1/x). Conventions of other graders that neither
// profile follows: order in a list, decimals that agree to fewer than Decimals
// places, a unit that must be repeated (but see Strict), an answer that counts
// only if spelled as the reference.
package deciding
