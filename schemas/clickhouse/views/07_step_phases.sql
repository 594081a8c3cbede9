-- Where the time of each training step went, in milliseconds, and how long the parts
-- stood idle for it. NULL where a bounding event is missing. Population: mode train,
-- trajectories that count; a step that a roll-back remade has a row per incarnation.
--
--   rollout_ms           first sampling to last end of a trajectory
--   grouping_ms          last end to the step's batch
--   training_ms          the step's batch to the trainer's answer
--   sampler_idle_ms      last end of this step to first sampling of the next step: the
--                        inference server had nothing of this run to sample (0 if they
--                        overlap, as asynchronous pacing lets them)
--   trainer_idle_ms      the trainer's answer to the step before, to this step's batch
CREATE OR REPLACE VIEW step_phases AS
WITH
    t AS
    (
        SELECT run_id, incarnation, step, min(fed_at) AS fed, min(started_at) AS first, max(ended_at) AS last
        FROM trajectory_fates
        WHERE mode = 'train' AND counted
        GROUP BY run_id, incarnation, step
    ),
    b AS (SELECT run_id, incarnation, step, any(batched_at) AS at FROM step_batches FINAL GROUP BY ALL),
    u AS (SELECT run_id, incarnation, step, min(published_at) AS at FROM policy_updates FINAL GROUP BY ALL),
    steps AS
    (
        SELECT
            t.run_id AS run_id, t.incarnation AS incarnation, t.step AS step,
            t.fed AS fed_at, t.first AS first_sample_at, t.last AS last_end_at, b.at AS batched_at, u.at AS answered_at,
            leadInFrame(t.first) OVER w AS next_first,
            lagInFrame(u.at) OVER w AS answered_before
        FROM t
        LEFT JOIN b ON b.run_id = t.run_id AND b.incarnation = t.incarnation AND b.step = t.step
        LEFT JOIN u ON u.run_id = t.run_id AND u.incarnation = t.incarnation AND u.step = t.step
        WINDOW w AS (PARTITION BY t.run_id, t.incarnation ORDER BY t.step ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
    )
SELECT
    run_id, incarnation, step, fed_at, first_sample_at, last_end_at, batched_at, answered_at,
    dateDiff('microsecond', first_sample_at, last_end_at) / 1000 AS rollout_ms,
    dateDiff('microsecond', last_end_at, batched_at) / 1000 AS grouping_ms,
    dateDiff('microsecond', batched_at, answered_at) / 1000 AS training_ms,
    if(isNull(last_end_at) OR isNull(next_first), NULL, greatest(0, dateDiff('microsecond', last_end_at, next_first) / 1000)) AS sampler_idle_ms,
    if(isNull(answered_before) OR isNull(batched_at), NULL, greatest(0, dateDiff('microsecond', answered_before, batched_at) / 1000)) AS trainer_idle_ms
FROM steps
SETTINGS join_use_nulls = 0;
