-- How far sampler and trainer are from each other: view mismatch_by_step says what the
-- columns are over. The newest incarnation of each step.
SELECT step, incarnation, mismatch_abs_mean, mismatch_abs_max, kl, ratio_max, outside_low_share, outside_high_share, entropy_mean
FROM mismatch_by_step
WHERE run_id = {run:String}
ORDER BY step, incarnation DESC
LIMIT 1 BY step;
