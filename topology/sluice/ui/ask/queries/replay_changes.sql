-- One replay's changes by family: view replay_changes says what they are.
SELECT change, sum(c.trajectories) AS trajectories, sum(old_graded_count) AS old_graded, sum(new_graded_count) AS new_graded,
    if(old_graded = 0, NULL, sum(old_reward_mean * old_graded_count) / old_graded) AS old_reward, if(new_graded = 0, NULL, sum(new_reward_mean * new_graded_count) / new_graded) AS new_reward,
    if(old_graded = 0, NULL, sum(old_correct_rate * old_graded_count) / old_graded) AS old_correct, if(new_graded = 0, NULL, sum(new_correct_rate * new_graded_count) / new_graded) AS new_correct,
    sum(c.compared) AS compared, sum(c.advantage_flips) AS advantage_flips
FROM replay_changes AS c
WHERE replay_id = {replay:String} AND run_id = {run:String}
GROUP BY change
ORDER BY trajectories DESC;
