// Package toolcall reads what the policy wrote in one turn and says what it wants.
//
// It reads the text of a turn, without special tokens and stripped of white space,
// and promises one of three outcomes: tool (exactly one call, complete, with code and
// nothing but white space after it), answer (no call was begun) or invalid (anything
// else) with a typed reason. Nothing is repaired by guessing: a program that runs is
// the program that was written, whole.
//
// A Protocol is one way of writing calls. Qwen's (XML) and Hermes' (JSON) are built
// in; another is another implementation of the same interface. Pure: no I/O, no clock.
package toolcall
