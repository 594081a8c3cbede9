// Package expr is the tree that an answer is read as: numbers, symbols, sums,
// sets, relations, words, with the unit and the words that stand beside a
// quantity.
//
// Nodes are never changed once they are shared. A node's hash is that of its
// value: sums, products, sets and lists hash without order, and units and words
// beside a quantity are left out of it (Marked says that there are some).
package expr
