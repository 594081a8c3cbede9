-- What the trainer reported of each step, the newest incarnation and its last report.
SELECT step, incarnation, loss, ratio_mean, ratio_max, clip_fraction_low, clip_fraction_high, entropy, gradient_norm, duration_ms, data, loss_tokens
FROM trainer_reports FINAL
WHERE run_id = {run:String} AND NOT skipped
ORDER BY step, incarnation DESC, event_time DESC
LIMIT 1 BY step;
