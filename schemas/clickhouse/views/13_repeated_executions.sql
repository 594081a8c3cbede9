-- Programs that may have run more than once: executions per incarnation and policy version,
-- and those of them that repeat an attempt of which nobody knows how it ended (the
-- connection to the sandbox was cut after the program had been sent, or the executor died).
-- Only the last run's result was shown to the policy.
--
--   repeated_rate        repeated / executions
--   unknown_runs         the attempts that were repeated; at least repeated
-- Every execution of mode train counts, also those of copies that were dropped later.
CREATE OR REPLACE VIEW repeated_executions AS
SELECT
    run_id,
    incarnation,
    policy_version_max AS policy_version,
    count() AS executions,
    countIf(turns.unknown_runs > 0) AS repeated,
    sum(turns.unknown_runs) AS unknown_runs,
    repeated / executions AS repeated_rate
FROM turns FINAL
WHERE mode = 'train' AND outcome != ''
GROUP BY run_id, incarnation, policy_version;
