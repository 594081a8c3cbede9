-- A replay's trajectories that came out otherwise.
-- default change= limit=200
SELECT change, incarnation, step, slot, sample_index, toString(copy) AS copy, question_id, substringUTF8(question, 1, 160) AS question_begins, substringUTF8(reference_answer, 1, 80) AS reference_answer,
    substringUTF8(old_answer, 1, 80) AS old_answer, substringUTF8(new_answer, 1, 80) AS new_answer, old_verdict, new_verdict, substringUTF8(old_verdict_reason, 1, 200) AS old_reason, substringUTF8(new_verdict_reason, 1, 200) AS new_reason,
    old_reward, new_reward
FROM replay_flips
WHERE replay_id = {replay:String} AND run_id = {run:String} AND ({change:String} = '' OR change = {change:String})
ORDER BY step, slot, sample_index, copy
LIMIT {limit:UInt32};
