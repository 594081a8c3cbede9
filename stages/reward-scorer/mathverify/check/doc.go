// Package check compares answers that come as JSON, one pair to an object.
//
// It reads {"id", "gold", "pred"}, where gold may be a text, a number or a list of
// references of which any is right, and optionally "decimals", "strict" and
// "set_against_inequality" for this pair alone. It writes {"id", "verdict", "method",
// "reason", "gold_read", "pred_read", "micros"}; a pair that cannot be read is answered
// with {"id", "error"}, and id null where it was not read.
//
// Lines answers a stream of them.
package check
