-- How a run's trajectories of mode train ended, per step; rows, second copies among them.
SELECT step, end_reason, count() AS trajectories
FROM trajectories FINAL
WHERE run_id = {run:String} AND mode = 'train'
GROUP BY step, end_reason
ORDER BY step, end_reason;
