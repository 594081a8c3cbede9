-- How does the trainer fare? Its own reports; clip fractions are shares of loss tokens. Of
-- several reports of a step, the last one of its newest incarnation.
SELECT step, policy_version, loss, ratio_mean, ratio_max, clip_fraction_low, clip_fraction_high, entropy, gradient_norm, duration_ms
FROM trainer_reports FINAL
WHERE run_id = {run:String}
ORDER BY step, incarnation DESC, event_time DESC
LIMIT 1 BY step;
