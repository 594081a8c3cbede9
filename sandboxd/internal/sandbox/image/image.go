// Package image names the warm images and chooses one for a program.
//
// Reads: program text. Promises: pure; a wrong guess costs time, never
// correctness, since every image can import every module.
package image

import "regexp"

// Image is a prepared interpreter.
type Image struct {
	// Name is what callers and metrics see.
	Name string
	// Exercise is Python source run before the checkpoint: it imports the
	// modules and takes their lazy first-use paths.
	Exercise string
	// Wake is Python source run in every clone before it reports ready: it
	// brings the pages that a first call needs back into memory. Each clone
	// pays for it, so it is small.
	Wake string
}

// Names of the standard images, each containing what the one before has.
const (
	Bare  = "bare"
	Numpy = "numpy"
	Sympy = "sympy"
)

// Cold names the sandbox that was booted, not restored.
const Cold = "cold"

const stdlib = `
import collections, decimal, fractions, functools, itertools, json, math, random, re, statistics, string, heapq, bisect, operator, copy, time, datetime, cmath
math.sqrt(2.0); random.random(); re.findall("a", "banana"); fractions.Fraction(1, 3); decimal.Decimal(1) / 3
`

const numpy = `
import numpy as np
np.linalg.inv(np.eye(3)); np.linalg.solve(np.eye(2), np.ones(2)); np.linalg.eig(np.eye(2))
np.arange(10).reshape(2, 5).sum(axis=0); np.random.default_rng(1).random(3); str(np.ones(3)); np.roots([1, 2, 1])
`

const sympy = `
import sympy
x, y = sympy.symbols("x y")
sympy.integrate(x * sympy.exp(-x**2), x); sympy.diff(sympy.sin(x) ** 2, x); sympy.solve(x**2 - 2, x)
sympy.simplify(sympy.sin(x) ** 2 + sympy.cos(x) ** 2); sympy.factor(x**2 - 1); sympy.Rational(1, 3) + 1
sympy.Matrix([[1, 2], [3, 4]]).inv(); sympy.N(sympy.pi, 20); sympy.factorint(60); sympy.solve([x + y - 3, x - y - 1], [x, y])
sympy.limit(sympy.sin(x) / x, x, 0); sympy.series(sympy.cos(x), x, 0, 4); sympy.summation(x, (x, 1, 10)); str(sympy.latex(x / y))
sympy.integrate(x**2 * sympy.exp(2 * x), x); sympy.integrate(x * sympy.sin(x), x); sympy.integrate(1 / (x**2 + 1), (x, 0, 1)); sympy.integrate(sympy.log(x), x)
sympy.solve([x**2 + y**2 - 5, x - y - 1], [x, y]); sympy.solve(x**3 - 6 * x**2 + 11 * x - 6, x); sympy.solveset(x**2 - 4, x); sympy.nsolve(sympy.cos(x) - x, 1)
sympy.expand((x + y) ** 5); sympy.apart(1 / (x**2 - 1)); sympy.gcd(x**2 - 1, x - 1); sympy.Poly(x**3 - 1).factor_list(); sympy.trigsimp(sympy.sin(x) * sympy.cos(x))
sympy.binomial(10, 3); sympy.factorial(10); sympy.isprime(97); list(sympy.primerange(1, 50)); sympy.divisors(60); sympy.totient(36); sympy.mod_inverse(3, 11)
sympy.Eq(x, y); sympy.sqrt(50); sympy.Sum(x**2, (x, 1, 10)).doit(); sympy.Matrix([[1, 2], [3, 4]]).eigenvals(); sympy.nsimplify("0.25")
`

// Standard returns the standard images, smallest first.
func Standard() []Image {
	return []Image{
		{Name: Bare, Exercise: stdlib},
		{Name: Numpy, Exercise: stdlib + numpy, Wake: wakeNumpy},
		{Name: Sympy, Exercise: stdlib + numpy + sympy, Wake: wakeSympy},
	}
}

const wakeNumpy = `
import numpy as np
str(np.arange(10).reshape(2, 5).sum(axis=0))
`

const wakeSympy = `
import sympy
x = sympy.symbols("x")
str(sympy.integrate(x**2, x) + sympy.diff(x**3, x))
`

var (
	sympyImport = regexp.MustCompile(`(?m)\b(?:import|from)\b[^\n#]*\b(?:sympy|mpmath)\b`)
	numpyImport = regexp.MustCompile(`(?m)\b(?:import|from)\b[^\n#]*\b(?:numpy|scipy|pandas|matplotlib)\b`)
)

// Choose returns the smallest standard image that holds what the program seems
// to import.
func Choose(code string) string {
	switch {
	case sympyImport.MatchString(code):
		return Sympy
	case numpyImport.MatchString(code):
		return Numpy
	}
	return Bare
}

// Larger lists the standard images that contain name, itself first.
func Larger(name string) []string {
	switch name {
	case Bare:
		return []string{Bare, Numpy, Sympy}
	case Numpy:
		return []string{Numpy, Sympy}
	}
	return []string{name}
}
