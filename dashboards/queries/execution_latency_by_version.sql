-- How long do executions take, and how long do they wait for a sandbox? Per policy
-- version, milliseconds; all executions of mode train. A
-- version that was made again after a roll-back is shown as made again.
SELECT incarnation, policy_version_max AS policy_version, count() AS executions, quantile(0.5)(wall_ms) AS wall_p50_ms, quantile(0.99)(wall_ms) AS wall_p99_ms, quantile(0.5)(queue_wait_ms) AS wait_p50_ms, quantile(0.99)(queue_wait_ms) AS wait_p99_ms
FROM turns FINAL
WHERE run_id = {run:String} AND mode = 'train' AND outcome != ''
GROUP BY incarnation, policy_version
ORDER BY policy_version, incarnation DESC
LIMIT 1 BY policy_version;
