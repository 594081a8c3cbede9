// Package inference asks an inference server in vLLM's dialect to sample, and asks its
// tokenizer to render conversations.
//
// It reads and writes HTTP: /v1/completions with token ids, /tokenize with messages and
// tools, /v1/models and /health. It promises:
//
//   - Token ids in, token ids out: an answer without token ids is refused
//     (ErrNoTokenIDs), never encoded again from its text.
//   - Nothing that the server was not told bends the distribution: every sampling
//     parameter is sent, so that a model's own defaults do not apply.
//   - A server that is away, or answers 5xx, 408 or 429, is waited for with backoff; the
//     log says so once per outage, however many requests wait. Any other 4xx is a
//     *StatusError at once.
//
// What a caller must do: make one VLLM, Check the endpoint before work, make a Template
// of it, and give both to its rollouts. Which endpoint to ask is said per request,
// because a policy update may move it. Other dialects are for whoever owns an interface
// over Sample, Render and Check.
package inference
