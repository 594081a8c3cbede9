-- Where the time of a run's trajectories went, in seconds summed over them; all copies.
SELECT
    sum(dateDiff('microsecond', sample_started_at, sample_ended_at)) / 1e6 AS sampling,
    sumIf(wall_ms, outcome != '') / 1e3 AS running,
    sumIf(queue_wait_ms, outcome != '') / 1e3 AS sandbox_wait,
    countIf(outcome != '') AS executions, count() AS turns, sum(length(tokens)) AS policy_tokens
FROM turns FINAL
WHERE run_id = {run:String};
