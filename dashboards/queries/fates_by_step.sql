-- What became of every sampled trajectory? Per step and fate, mode train; share is of
-- all sampled ones of the step and its incarnation, copies that do not count included.
SELECT incarnation, step, fate, count() AS trajectories, count() / sum(count()) OVER (PARTITION BY incarnation, step) AS share
FROM trajectory_fates
WHERE run_id = {run:String} AND mode = 'train'
GROUP BY incarnation, step, fate
ORDER BY incarnation, step, trajectories DESC;
