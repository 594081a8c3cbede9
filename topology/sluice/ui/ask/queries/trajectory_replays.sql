-- What replays say of one trajectory.
SELECT replay_id, graded, substringUTF8(ungraded_reason, 1, 300) AS ungraded_reason, reward, correct, substringUTF8(answer, 1, 200) AS answer, verdict, verdict_method,
    substringUTF8(gold_read, 1, 300) AS gold_read, substringUTF8(pred_read, 1, 300) AS pred_read, scorer, scorer_version, score_names, score_rewards, score_errors
FROM replay_scores FINAL
WHERE run_id = {run:String} AND incarnation = {incarnation:UInt32} AND step = {step:UInt64} AND slot = {slot:UInt32} AND sample_index = {sample:UInt32} AND copy = {copy:UInt64}
ORDER BY replay_id
LIMIT 100;
