// Package remote asks a verifier of the user's own over HTTP for rewards.
//
// It reads judged trajectories and writes, in batches, one JSON request each:
//
//	POST <url>
//	{"trajectories": [{"final_text", "answer", "reference", "correct", "valid_format", "verdict",
//	  "end_reason", "data_source", "question_id", "code_calls", "code_errors", "executions",
//	  "first_call_failed", "turns", "tokens", "truncated"}, …]}
//
// and reads
//
//	200 {"rewards": [1.0, null, …]}
//
// with one entry per trajectory in the same order; null is "no reward". It
// promises that a trajectory without a reward in the answer, or whose request
// failed after all attempts, is ungraded and never paid 0. Time-outs, 429 and
// 5xx are tried again; any other status is not. A redirect is not followed: trajectories,
// token and rewards are between this pipeline and the URL that was configured. Errors name
// the verifier without user, query and fragment, which may be secrets; of an answer that is
// refused for its status they quote the beginning.
package remote
