-- What became of every sampled trajectory? Per step and fate; share is of all sampled
-- ones, dropped copies included.
SELECT step, fate, count() AS trajectories, count() / sum(count()) OVER (PARTITION BY step) AS share
FROM trajectory_fates
WHERE run_id = {run:String}
GROUP BY step, fate
ORDER BY step, trajectories DESC;
