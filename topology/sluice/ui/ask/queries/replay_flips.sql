-- A replay's trajectories that came out otherwise, the families that matter most first.
-- default change= limit=200
SELECT change, incarnation, step, slot, sample_index, toString(p.copy) AS copy, question_id, substringUTF8(old_answer, 1, 80) AS old_answer, substringUTF8(new_answer, 1, 80) AS new_answer,
    old_verdict, new_verdict, substringUTF8(old_ungraded_reason, 1, 200) AS old_ungraded, substringUTF8(new_ungraded_reason, 1, 200) AS new_ungraded, old_reward, new_reward, old_advantage, new_advantage
FROM replay_pairs AS p
WHERE replay_id = {replay:String} AND run_id = {run:String} AND change NOT IN ('same', 'no_original') AND ({change:String} = '' OR change = {change:String})
ORDER BY indexOf(['now_wrong', 'now_correct', 'now_ungraded', 'now_graded', 'reward', 'read_otherwise'], change), step, slot, sample_index, p.copy
LIMIT {limit:UInt32};
