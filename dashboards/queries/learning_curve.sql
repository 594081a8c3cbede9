-- Does it learn? Reward and correctness per step, with what part of the work they
-- speak of. Denominators: view step_summary.
SELECT step, reward_mean, reward_mean_trained, correct_rate, valid_box_rate, graded_share, update_skipped
FROM step_summary
WHERE run_id = {run:String}
ORDER BY incarnation, step;
