// Package inference asks inference servers to sample, and to render conversations.
//
// It reads and writes HTTP, in the dialects of vLLM (/v1/completions with token ids, and
// /inference/v1/generate), SGLang (/generate), llama-server (/completion) and OpenAI
// endpoints that write tokens as ids. One file per dialect; which one a server speaks is
// found out by asking it (detect.go). It promises:
//
//   - Token ids in, token ids out: an answer without token ids is refused
//     (ErrNoTokenIDs), never encoded again from its text. Ids, logprobs and the server's
//     own counts are compared at every answer.
//   - A Request with Progress is streamed (stream.go), in every dialect: its answer is the
//     one that would come whole, checked alike. A stream that breaks off is ErrCut; what it
//     brought until then is an answer whose choices end as rollout.Cut.
//   - Nothing that the server was not told bends the distribution: every sampling
//     parameter is sent, so that a model's or a server's own defaults do not apply.
//   - What an answer means stands in one table (class.go): an ending of the policy's, an
//     abort, an absence that is waited for, trouble that is tried again within the turn's
//     budget (budget.go), a refusal of this request, or one of everybody. What is on no
//     list there is the server's trouble.
//   - A server that is away is waited for by probing it; the log says so once per
//     outage, however many requests wait. Others are asked meanwhile.
//   - Each attempt bears a request id of its own.
//
// What a caller must do:
//
//  1. Make one Client whose context ends when the process is to stop: what waits then
//     fails with ErrStopping.
//  2. Check the endpoints that an operator named, and make a Template of them.
//  3. For each turn make a Turn, Begin it, and Sample until its choices are usable or its
//     budget is used up: a choice with Err is reported with Unusable, an abort with
//     Aborted.
//
// Where to ask is said per request, because a policy update may move it.
package inference
