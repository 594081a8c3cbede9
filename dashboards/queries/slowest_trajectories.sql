-- Which trajectories hold a step up?
SELECT incarnation, step, slot, sample_index, waited_ms + sampling_ms + executing_ms + exec_waiting_ms + moving_ms AS total_ms, sampling_ms, executing_ms, exec_waiting_ms, moving_ms
FROM trajectory_phases
WHERE run_id = {run:String} AND mode = 'train' AND total_ms IS NOT NULL
ORDER BY total_ms DESC
LIMIT 20;
