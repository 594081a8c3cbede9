-- Replays of this database, by run: how many trajectories each scored again and how many
-- came out otherwise.
SELECT replay_id, run_id, sum(c.trajectories) AS trajectories, sumIf(c.trajectories, change != 'same') AS changed,
    sumIf(c.trajectories, change IN ('now_correct', 'now_wrong', 'now_graded', 'now_ungraded')) AS flips
FROM replay_changes AS c
GROUP BY replay_id, run_id
ORDER BY replay_id, run_id
LIMIT 200;
