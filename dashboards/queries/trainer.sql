-- How does the trainer fare? Its own reports; clip fractions are shares of loss tokens.
SELECT step, policy_version, loss, ratio_mean, ratio_max, clip_fraction_low, clip_fraction_high, entropy, gradient_norm, duration_ms
FROM trainer_reports FINAL
WHERE run_id = {run:String}
ORDER BY incarnation, step;
