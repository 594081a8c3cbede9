-- Why tool calls go wrong: executions per incarnation, policy version, outcome and class of the
-- Python exception ('' where there is none).
--
--   rate                 executions of this row / all executions sampled by the version
-- Every execution of mode train counts, also those of copies that were dropped later:
-- they ran. The version is the one that sampled the call's last token.
CREATE OR REPLACE VIEW tool_errors AS
SELECT
    run_id,
    incarnation,
    policy_version_max AS policy_version,
    outcome,
    exception,
    count() AS executions,
    sum(count()) OVER (PARTITION BY run_id, incarnation, policy_version) AS version_executions,
    count() / sum(count()) OVER (PARTITION BY run_id, incarnation, policy_version) AS rate,
    quantile(0.5)(wall_ms) AS wall_p50_ms,
    quantile(0.99)(wall_ms) AS wall_p99_ms
FROM turns FINAL
WHERE mode = 'train' AND outcome != ''
GROUP BY run_id, incarnation, policy_version, outcome, exception;
