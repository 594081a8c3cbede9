-- Where the time of each trajectory went, in milliseconds; NULL where an event that
-- bounds the phase has no time. Clocks of several hosts are compared as they are.
-- Population: all trajectories; the phases after scoring (grouping_ms and on) only of
-- those that count, because the closing did not wait for any other.
--
--   waited_ms            fed to first sampling
--   sampling_ms          sum over turns of sampling
--   executing_ms         sum over turns of run time, exec_waiting_ms of waiting for a sandbox
--   moving_ms            rest of the time from first sampling to the end: events in
--                        transit, queues before a stage, the sampler's own work
--   scoring_ms           end to score
--   grouping_ms          score to being taken into the group
--   closing_ms           taken to the group's closing: waiting for the slowest member
--   batching_ms          group's closing to the step's batch: waiting for the slowest group
CREATE OR REPLACE VIEW trajectory_phases AS
WITH
    s AS
    (
        SELECT
            run_id, incarnation, step, slot, sample_index, copy,
            sum(dateDiff('microsecond', sample_started_at, sample_ended_at)) / 1000 AS sampling,
            sum(if(outcome = '', 0, wall_ms)) AS executing,
            sum(if(outcome = '', 0, queue_wait_ms)) AS exec_waiting
        FROM turns FINAL
        GROUP BY run_id, incarnation, step, slot, sample_index, copy
    ),
    m AS (SELECT run_id, incarnation, step, slot, sample_index, copy, any(taken_at) AS at FROM group_members FINAL GROUP BY ALL),
    g AS (SELECT run_id, incarnation, step, slot, any(closed_at) AS at FROM groups FINAL GROUP BY ALL),
    b AS (SELECT run_id, incarnation, step, any(batched_at) AS at FROM step_batches FINAL GROUP BY ALL)
SELECT
    t.run_id AS run_id, t.incarnation AS incarnation, t.step AS step, t.slot AS slot, t.sample_index AS sample_index, t.copy AS copy,
    t.mode AS mode,
    t.counted AS counted,
    dateDiff('microsecond', t.fed_at, t.started_at) / 1000 AS waited_ms,
    s.sampling AS sampling_ms,
    s.executing AS executing_ms,
    s.exec_waiting AS exec_waiting_ms,
    dateDiff('microsecond', t.started_at, t.ended_at) / 1000 - s.sampling - s.executing - s.exec_waiting AS moving_ms,
    dateDiff('microsecond', t.ended_at, t.scored_at) / 1000 AS scoring_ms,
    if(t.counted, dateDiff('microsecond', t.scored_at, m.at) / 1000, NULL) AS grouping_ms,
    if(t.counted, dateDiff('microsecond', m.at, g.at) / 1000, NULL) AS closing_ms,
    if(t.counted, dateDiff('microsecond', g.at, b.at) / 1000, NULL) AS batching_ms
FROM trajectory_fates AS t
LEFT JOIN s ON s.run_id = t.run_id AND s.incarnation = t.incarnation AND s.step = t.step AND s.slot = t.slot AND s.sample_index = t.sample_index AND s.copy = t.copy
LEFT JOIN m ON m.run_id = t.run_id AND m.incarnation = t.incarnation AND m.step = t.step AND m.slot = t.slot AND m.sample_index = t.sample_index AND m.copy = t.copy
LEFT JOIN g ON g.run_id = t.run_id AND g.incarnation = t.incarnation AND g.step = t.step AND g.slot = t.slot
LEFT JOIN b ON b.run_id = t.run_id AND b.incarnation = t.incarnation AND b.step = t.step
SETTINGS join_use_nulls = 0;
