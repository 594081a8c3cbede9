-- Rewards, verdicts and advantages of replays, old and new, by question and by family of
-- change (view replay_pairs says what the families are). Sums over questions or families
-- come from adding up the counts.
--
--   trajectories         of this question and family
--   old_graded_count, new_graded_count   of them; the denominators of the next four
--   old_reward_mean, new_reward_mean
--   old_correct_rate, new_correct_rate
--   old_undecided, new_undecided   verdicts that could not be reached
--   compared             closed in both, as the same copy: the denominator of
--   old_advantage_abs, new_advantage_abs   mean size of the advantage, and
--   advantage_shift      mean of |new - old|
--   advantage_flips      compared ones whose advantage changed its sign
CREATE OR REPLACE VIEW replay_changes AS
SELECT
    replay_id, run_id, data_source, question_id, change,
    count() AS trajectories,
    countIf(old_graded) AS old_graded_count,
    countIf(new_graded) AS new_graded_count,
    avgOrNull(p.old_reward) AS old_reward_mean,
    avgOrNull(p.new_reward) AS new_reward_mean,
    if(old_graded_count = 0, NULL, countIf(old_graded AND old_correct) / old_graded_count) AS old_correct_rate,
    if(new_graded_count = 0, NULL, countIf(new_graded AND new_correct) / new_graded_count) AS new_correct_rate,
    countIf(old_verdict = 'undecided') AS old_undecided,
    countIf(new_verdict = 'undecided') AS new_undecided,
    countIf(p.old_advantage IS NOT NULL AND p.new_advantage IS NOT NULL) AS compared,
    avgOrNullIf(abs(p.old_advantage), p.old_advantage IS NOT NULL AND p.new_advantage IS NOT NULL) AS old_advantage_abs,
    avgOrNullIf(abs(p.new_advantage), p.old_advantage IS NOT NULL AND p.new_advantage IS NOT NULL) AS new_advantage_abs,
    avgOrNullIf(abs(p.new_advantage - p.old_advantage), p.old_advantage IS NOT NULL AND p.new_advantage IS NOT NULL) AS advantage_shift,
    countIf(p.old_advantage * p.new_advantage < 0) AS advantage_flips
FROM replay_pairs AS p
GROUP BY replay_id, run_id, data_source, question_id, change;
