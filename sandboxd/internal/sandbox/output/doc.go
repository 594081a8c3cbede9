// Package output keeps the end of a program's streams and counts the rest.
//
// Reads: whatever a program writes. Promises: memory bounded by the size of the
// tail whatever the program writes; every byte counted; one callback, once,
// when stdout and stderr together exceed the budget.
package output
