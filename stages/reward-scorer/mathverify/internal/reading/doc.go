// Package reading turns the text of an answer into a tree.
//
// It reads LaTeX, plain text, Unicode and words, in one pass: the lexer keeps a
// stack of what it is inside of (a formula, \text, a formula in \text); phrases
// turn words that are mathematics into its tokens; the parser, a recursive
// descent, returns an answer with its unit, the words beside it, and what parted
// several answers. It takes time linear in the length.
//
// # Spellings
//
//   - \frac12 is a half, 3\frac12 is three and a half, \sqrt12 the root of 12,
//     2^53 has the exponent 53, 1,234 is one number unless the two agree as lists.
//   - \log is the logarithm to base 10. i is the imaginary unit, unless it is the
//     index of a sum.
//   - "x = 5", "f(x) = 5", "AB = 5", "sin A = 5", "the area is 5" and "x + y = 5"
//     name what is 5.
//   - Of several letters in a row a known function, unit or word is one; the rest
//     are a product.
//
// # Words
//
// Every word has a class in the lexicon: fillers say nothing, nouns, adjectives and
// glue may stand on one side only, denials turn round what is said. A word that is
// not there counts as it is written.
//
// # What is not read
//
// Bars that open inside bars without a sign between (||x||y||), numbers side by
// side, \char codes.
package reading
