-- Every trajectory of a replay beside the original: scores, verdicts and advantages, old
-- and new. One row per replay, place and copy.
--
-- change is the family of the difference, the first that holds:
--   no_original     the original is not in this database
--   now_graded      it was ungraded
--   now_ungraded    it was graded: the new reward failed on it
--   now_correct     now_wrong: the comparison with the reference came out otherwise
--   reward          another reward for the same outcome
--   read_otherwise  the same reward, but another answer, verdict or method
--   same            none of these
-- Advantages are of the copy that held its place when its group closed; NULL where that
-- was another copy or no closing is there (a replay that stopped at scores).
CREATE OR REPLACE VIEW replay_pairs AS
WITH
    old AS
    (
        SELECT
            run_id, incarnation, step, slot, sample_index, copy,
            1 AS found, graded AS old_graded, ungraded_reason AS old_ungraded_reason, reward AS old_reward, correct AS old_correct,
            valid_format AS old_valid_format, answer AS old_answer, verdict AS old_verdict, verdict_method AS old_verdict_method,
            scorer AS old_scorer, scorer_version AS old_scorer_version
        FROM trajectories FINAL
    ),
    old_fates AS
    (
        SELECT run_id, incarnation, step, slot, sample_index, copy, fate AS old_fate, advantage AS old_advantage, 1 AS old_closed
        FROM group_fates FINAL
    ),
    new_fates AS
    (
        SELECT replay_id, run_id, incarnation, step, slot, sample_index, copy, fate AS new_fate, advantage AS new_advantage, 1 AS new_closed
        FROM replay_group_fates FINAL
    )
SELECT
    replay_id, run_id, incarnation, step, slot, sample_index, copy, question_id, data_source, mode,
    multiIf(
        found = 0, 'no_original',
        graded AND NOT old_graded, 'now_graded',
        old_graded AND NOT graded, 'now_ungraded',
        correct AND NOT old_correct, 'now_correct',
        old_correct AND NOT correct, 'now_wrong',
        reward != old_reward, 'reward',
        answer != old_answer OR valid_format != old_valid_format OR verdict != old_verdict OR verdict_method != old_verdict_method, 'read_otherwise',
        'same') AS change,
    old_graded, graded AS new_graded, old_ungraded_reason, ungraded_reason AS new_ungraded_reason,
    if(found = 1 AND old_graded, old_reward, NULL) AS old_reward, if(graded, reward, NULL) AS new_reward,
    old_correct, correct AS new_correct, old_answer, answer AS new_answer,
    old_verdict, verdict AS new_verdict, old_verdict_method, verdict_method AS new_verdict_method,
    old_scorer, scorer AS new_scorer, old_scorer_version, scorer_version AS new_scorer_version,
    old_fate, new_fate,
    if(old_closed = 1, old_advantage, NULL) AS old_advantage, if(new_closed = 1, new_advantage, NULL) AS new_advantage
FROM (SELECT * FROM replay_scores FINAL) AS r
LEFT JOIN old USING (run_id, incarnation, step, slot, sample_index, copy)
LEFT JOIN old_fates USING (run_id, incarnation, step, slot, sample_index, copy)
LEFT JOIN new_fates USING (replay_id, run_id, incarnation, step, slot, sample_index, copy)
SETTINGS join_use_nulls = 0;
