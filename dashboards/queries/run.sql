-- The run in one row. Denominators: view run_summary.
SELECT *
FROM run_summary
WHERE run_id = {run:String};
