-- Does it learn? Reward and correctness per step, with what part of the work they
-- speak of. Denominators: view step_summary.
-- A step that was remade after a roll-back is shown as remade.
SELECT step, reward_mean, reward_mean_trained, correct_rate, valid_box_rate, graded_share, update_skipped
FROM step_summary
WHERE run_id = {run:String}
ORDER BY step, incarnation DESC
LIMIT 1 BY step;
