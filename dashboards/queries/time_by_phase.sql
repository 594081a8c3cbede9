-- Where does a trajectory's time go? Mean milliseconds per phase and step; phases as
-- view trajectory_phases has them. A step that was remade after a roll-back is
-- shown as remade.
SELECT incarnation, step, avg(waited_ms) AS waited, avg(sampling_ms) AS sampling, avg(executing_ms) AS executing, avg(exec_waiting_ms) AS waiting_for_a_sandbox, avg(moving_ms) AS moving, avg(scoring_ms) AS scoring, avg(grouping_ms) AS grouping, avg(closing_ms) AS closing, avg(batching_ms) AS batching
FROM trajectory_phases
WHERE run_id = {run:String} AND mode = 'train'
GROUP BY incarnation, step
ORDER BY step, incarnation DESC
LIMIT 1 BY step;
