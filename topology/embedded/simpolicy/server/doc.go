// Package server is simpolicy's inference server, in the dialect of vLLM's OpenAI
// server as far as a sampler needs it.
//
//	POST /v1/completions  prompt as token ids or text; n, seed, max_tokens,
//	                      temperature, top_p, top_k, logprobs (0), stop_token_ids,
//	                      return_token_ids, request_id, stream, stream_options
//	POST /tokenize        {prompt} or {messages, tools, add_generation_prompt,
//	                      chat_template_kwargs: {enable_thinking}}
//	POST /detokenize      {tokens}
//	GET  /v1/models, /health, /version, /tokenizer_info, /weight_info
//	GET  /policy          not vLLM's: the version and the probabilities of each choice
//
// A completion's end-of-turn token stays in token_ids and in the logprobs and leaves
// only the text. Logprobs are of the distribution that was sampled from (vLLM's
// processed_logprobs). What the dialect has and this server does not is refused with
// status 400 and the field's name, never ignored, where ignoring it would change the
// answer. Answers bear one field more than vLLM's, policy_version.
//
// Promises: the same prompt, seed and policy version give the same tokens and
// logprobs; an error is {"error": {message, type, param, code}} with a status of 4xx;
// all samples of one request are of one policy version.
//
// On request it is slow (a latency with jitter before each sample) and aborts
// generations at a rate (finish_reason "abort", with the tokens so far). Those draws
// come from a stream of their own, so that a request made again meets another fate.
package server
