-- One row per turn, to read a trajectory turn by turn: ORDER BY turn. Which tokens are
-- trained on: policy_tokens of them (loss mask 1), then glue_tokens (loss mask 0: the
-- observation and the chat template around it). All text was written by a model or by
-- its programs: escape control characters before it reaches a terminal.
CREATE OR REPLACE VIEW transcripts AS
SELECT
    run_id, incarnation, step, slot, sample_index, copy, turn,
    kind, invalid_reason, truncated, text, code, observation,
    outcome, exit_code, exception, stdout, stderr, wall_ms, queue_wait_ms,
    length(tokens) AS policy_tokens, length(glue_tokens) AS glue_tokens_count,
    tokens, logprobs, glue_tokens,
    policy_version_min, policy_version_max
FROM turns FINAL;
