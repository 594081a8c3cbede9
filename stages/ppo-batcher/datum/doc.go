// Package datum turns a trajectory into training arrays.
//
// It reads a trajectory's tokens (the prompt's, then per turn those that the policy
// sampled and those that were put after them) and an advantage; it writes a Datum:
// all tokens, shifted by one, so that value i of each array speaks of the token at
// i+1, which is predicted from those before it. What stands after the last turn (an
// observation that left no room for another one) is left out: nothing is trained on
// behind it.
//
// It promises: behaviour logprobs and advantages stand on the policy's own tokens and
// are 0 everywhere else (prompt, glue and observation are never trained on); no token
// is encoded, cut or padded here; a trajectory without policy tokens gives no datum.
package datum
