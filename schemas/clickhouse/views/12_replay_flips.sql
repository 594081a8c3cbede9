-- Every trajectory on which a replay and the original do not agree whether it is right or
-- graded at all, with what each read and why: a list to look through.
CREATE OR REPLACE VIEW replay_flips AS
WITH old AS
(
    SELECT run_id, incarnation, step, slot, sample_index, copy, question, reference_answer, final_text,
        verdict_reason AS old_verdict_reason, gold_read AS old_gold_read, pred_read AS old_pred_read
    FROM trajectories FINAL
),
new AS
(
    SELECT replay_id, run_id, incarnation, step, slot, sample_index, copy,
        verdict_reason AS new_verdict_reason, gold_read AS new_gold_read, pred_read AS new_pred_read
    FROM replay_scores FINAL
)
SELECT
    replay_id, change, run_id, incarnation, step, slot, sample_index, copy, question_id, data_source,
    question, reference_answer, old_answer, new_answer,
    old_verdict, old_verdict_method, old_verdict_reason, old_gold_read, old_pred_read, old_ungraded_reason,
    new_verdict, new_verdict_method, new_verdict_reason, new_gold_read, new_pred_read, new_ungraded_reason,
    p.old_reward AS old_reward, p.new_reward AS new_reward, p.old_advantage AS old_advantage, p.new_advantage AS new_advantage, final_text
FROM (SELECT * FROM replay_pairs WHERE change IN ('now_correct', 'now_wrong', 'now_graded', 'now_ungraded')) AS p
LEFT JOIN old USING (run_id, incarnation, step, slot, sample_index, copy)
LEFT JOIN new USING (replay_id, run_id, incarnation, step, slot, sample_index, copy)
SETTINGS join_use_nulls = 0;
