-- The turns of one trajectory, long texts cut to 6000 characters with their whole length
-- beside them.
-- default from=0 limit=40
SELECT turn, kind, invalid_reason, truncated, aborts, attempts, version_source, policy_version_min, policy_version_max,
    substringUTF8(text, 1, 6000) AS text, lengthUTF8(text) AS text_length,
    substringUTF8(code, 1, 6000) AS code, lengthUTF8(code) AS code_length,
    substringUTF8(observation, 1, 6000) AS observation, lengthUTF8(observation) AS observation_length,
    substringUTF8(stdout, 1, 6000) AS stdout, lengthUTF8(stdout) AS stdout_length, substringUTF8(stderr, 1, 6000) AS stderr, lengthUTF8(stderr) AS stderr_length,
    stdout_truncated, stderr_truncated, stdout_bytes, stderr_bytes,
    length(tokens) AS policy_tokens, length(glue_tokens) AS glue, if(empty(logprobs), NULL, arraySum(logprobs) / length(logprobs)) AS logprob_mean,
    execution, outcome, exit_code, exception, wall_ms, cpu_ms, queue_wait_ms, peak_memory_bytes, warm, image, sandbox_id, protections, delivery, unknown_runs,
    sample_started_at, sample_ended_at, queued_at, execution_started_at, execution_ended_at
FROM turns
WHERE run_id = {run:String} AND incarnation = {incarnation:UInt32} AND step = {step:UInt64} AND slot = {slot:UInt32} AND sample_index = {sample:UInt32} AND copy = {copy:UInt64}
    AND turn >= {from:UInt32}
ORDER BY turn
LIMIT 1 BY turn
LIMIT {limit:UInt32};
