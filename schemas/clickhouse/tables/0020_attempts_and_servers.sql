-- How the inference servers did: rows of before have 0 and ''.
--
--   turns.attempts                 requests that servers took on for the turn: 1 where
--                                  nothing went wrong
--   turns.version_source           how it is known which version sampled the tokens: given
--                                  (for each), single (one for the request), declared (by
--                                  the policy update alone), unknown (in a word that no
--                                  policy update maps)
--   trajectories.failed_attempts   requests for the turn at which it ended, none usable
--   trajectories.logprobs_mode     what the logprobs are of: raw, processed
--   trajectories.dialect           how the server was asked: vllm, sglang, llamacpp …
--   policy_updates.server_version  what the server calls the version
ALTER TABLE turns
    ADD COLUMN IF NOT EXISTS attempts UInt32 AFTER aborts,
    ADD COLUMN IF NOT EXISTS version_source LowCardinality(String) AFTER policy_version_max;

ALTER TABLE trajectories
    ADD COLUMN IF NOT EXISTS failed_attempts UInt32 AFTER aborts,
    ADD COLUMN IF NOT EXISTS logprobs_mode LowCardinality(String) AFTER policy_version_max,
    ADD COLUMN IF NOT EXISTS dialect LowCardinality(String) AFTER logprobs_mode;

ALTER TABLE policy_updates
    ADD COLUMN IF NOT EXISTS server_version LowCardinality(String) AFTER model;
