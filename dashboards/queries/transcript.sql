-- One trajectory turn by turn: what was written, run and seen, and how many of its tokens
-- are trained on (policy_tokens) or not (glue_tokens_count). Of copies, the one that
-- counts.
SELECT turn, kind, text, code, outcome, observation, policy_tokens, glue_tokens_count
FROM transcripts
WHERE run_id = {run:String} AND step = {step:UInt64} AND slot = {slot:UInt32} AND sample_index = {sample:UInt32}
  AND (incarnation, copy) IN (
    SELECT incarnation, copy FROM trajectory_fates
    WHERE run_id = {run:String} AND step = {step:UInt64} AND slot = {slot:UInt32} AND sample_index = {sample:UInt32} AND counted
    ORDER BY incarnation DESC, graded DESC LIMIT 1)
ORDER BY turn;
