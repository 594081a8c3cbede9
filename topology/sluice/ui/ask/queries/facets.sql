-- What a run's trajectories can be filtered for: values with their counts, rows of all
-- copies.
SELECT 'end' AS filter, toString(end_reason) AS value, count() AS trajectories FROM trajectories WHERE run_id = {run:String} GROUP BY value
UNION ALL
SELECT 'mode', toString(mode) AS value, count() FROM trajectories WHERE run_id = {run:String} GROUP BY value
UNION ALL
SELECT 'outcome', toString(arrayJoin(arrayDistinct(execution_outcomes))) AS value, count() FROM trajectories WHERE run_id = {run:String} GROUP BY value
UNION ALL
SELECT 'exception', toString(exception) AS value, count() FROM turns WHERE run_id = {run:String} AND exception != '' GROUP BY value ORDER BY count() DESC LIMIT 50;
