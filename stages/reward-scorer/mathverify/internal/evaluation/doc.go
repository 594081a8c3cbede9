// Package evaluation calculates what a tree is worth, on a budget of steps.
//
// From cheap to dear: exact rationals; two fields of p² elements, which settle
// polynomials, rational functions, integers of any size (towers are never written
// out), square roots, complex numbers, and the exponential and trigonometric
// functions of linear arguments; ball arithmetic, for other constants at rising
// precision.
//
// Finite sums of polynomials and geometric sums, integrals of polynomials,
// Dirichlet's integral and derivatives are calculated. Other integrals, infinite
// sums and products, and limits are estimated at two orders that must agree to 42
// binary places. A finite sum or a power of -1 with a letter for its bound or
// exponent is evaluated at whole values of the letter.
//
// It promises that a ball holds the value, that steps and never time end a
// calculation, and that equal trees and seeds give equal values.
package evaluation
