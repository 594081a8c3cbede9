// Package simpolicy is the program simpolicy: a stand-in for a GPU, inference server
// and trainer in one, of a small probabilistic policy over strategies.
//
// Reads ppo-batches of one run; writes policy-updates and trainer-reports; serves
// vLLM's dialect over HTTP (package server), /healthz, /readyz and /metrics.
//
// Promises: serving does not depend on the brokers, which it waits for; the policy
// that is served is never older than the last update published; a first SIGINT or
// SIGTERM ends it cleanly, a second at once.
//
//	tokenizer  its own small vocabulary, lossless on any bytes
//	chat       the chat template, in Qwen's manner
//	worked     worked solutions turned into programs; gsm8k holds a sample
//	policy     the grammar of strategies, sampling, logprobs and gradients
//	ppo        one training step
//	server     the inference server
//	state      parameters and position on disk
//	trainer    the loop on Kafka
package simpolicy
