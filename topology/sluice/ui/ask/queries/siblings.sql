-- The members of a group, all copies, each with its place at the closing and in the batch.
WITH
    f AS (SELECT sample_index, copy, fate, advantage FROM group_fates FINAL WHERE run_id = {run:String} AND incarnation = {incarnation:UInt32} AND step = {step:UInt64} AND slot = {slot:UInt32}),
    b AS (SELECT sample_index, copy, fate AS batch_fate, detail, micro_batch, staleness, loss_tokens FROM batch_members FINAL WHERE run_id = {run:String} AND incarnation = {incarnation:UInt32} AND step = {step:UInt64} AND slot = {slot:UInt32}),
    m AS (SELECT sample_index, copy, taken_at FROM group_members FINAL WHERE run_id = {run:String} AND incarnation = {incarnation:UInt32} AND step = {step:UInt64} AND slot = {slot:UInt32})
SELECT t.sample_index AS sample_index, toString(t.copy) AS copy, t.end_reason AS end_reason, t.turns AS turns, t.code_calls AS code_calls, t.execution_outcomes AS execution_outcomes,
    t.policy_tokens AS policy_tokens, t.graded AS graded, t.reward AS reward, t.correct AS correct, substringUTF8(t.answer, 1, 60) AS answer,
    f.fate AS fate, if(f.fate = '', NULL, f.advantage) AS advantage, b.batch_fate AS batch_fate, b.detail AS detail, b.micro_batch AS micro_batch, b.staleness AS staleness,
    m.taken_at AS taken_at, t.fed_at AS fed_at, t.started_at AS started_at, t.ended_at AS ended_at
FROM (SELECT * FROM trajectories FINAL WHERE run_id = {run:String} AND incarnation = {incarnation:UInt32} AND step = {step:UInt64} AND slot = {slot:UInt32}) AS t
LEFT JOIN f ON f.sample_index = t.sample_index AND f.copy = t.copy
LEFT JOIN b ON b.sample_index = t.sample_index AND b.copy = t.copy
LEFT JOIN m ON m.sample_index = t.sample_index AND m.copy = t.copy
ORDER BY sample_index, copy
LIMIT 500
SETTINGS join_use_nulls = 0;
