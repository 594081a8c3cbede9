-- The run, in one row for training and one for evaluation. Denominators: view run_summary.
SELECT *
FROM run_summary
WHERE run_id = {run:String}
ORDER BY mode;
