-- One row per run and mode, the last active first. Rewards are of closed groups: the sum
-- over graded members that count / their number, per step of the newest incarnation, the
-- last 120 steps. trajectories are rows, second copies among them.
WITH
    g AS
    (
        SELECT run_id, mode, incarnation, step,
            sum(graded) AS n, sum(reward_mean * graded) AS reward, count() AS groups_closed, countIf(closing = 'degenerate') AS degenerate,
            min(opened_at) AS first_at, max(event_time) AS last_at
        FROM groups FINAL
        GROUP BY run_id, mode, incarnation, step
    ),
    newest AS (SELECT * FROM g ORDER BY run_id, mode, step, incarnation DESC LIMIT 1 BY run_id, mode, step),
    r AS
    (
        SELECT run_id, mode,
            count() AS steps, max(step) AS last_step, max(incarnation) AS incarnation, sum(groups_closed) AS groups_closed, sum(degenerate) AS groups_degenerate,
            sum(n) AS graded, min(first_at) AS first_at, max(last_at) AS last_at,
            arrayMap(p -> p.2, arraySlice(arraySort(groupArray((step, if(n = 0, NULL, reward / n)))), -120)) AS rewards
        FROM newest
        GROUP BY run_id, mode
    ),
    t AS (SELECT run_id, mode, count() AS trajectories, min(event_time) AS first_row, max(event_time) AS last_row FROM trajectories GROUP BY run_id, mode)
SELECT t.run_id AS run_id, t.mode AS mode, t.trajectories AS trajectories, r.steps AS steps, r.last_step AS last_step, r.incarnation AS incarnation,
    r.groups_closed AS groups_closed, r.groups_degenerate AS groups_degenerate, r.graded AS graded,
    if(r.steps = 0, t.first_row, least(t.first_row, ifNull(r.first_at, t.first_row))) AS first_at, greatest(t.last_row, r.last_at) AS last_at, r.rewards AS rewards
FROM t LEFT JOIN r ON r.run_id = t.run_id AND r.mode = t.mode
ORDER BY last_at DESC
LIMIT 500
SETTINGS join_use_nulls = 0;
