-- Evaluation trajectories by the step that they were sampled in: right / graded.
SELECT step, count() AS trajectories, countIf(graded) AS n, if(n = 0, NULL, countIf(graded AND correct) / n) AS correct_rate, if(n = 0, NULL, sumIf(reward, graded) / n) AS reward_mean
FROM trajectories FINAL
WHERE run_id = {run:String} AND mode = 'eval'
GROUP BY step
ORDER BY step;
