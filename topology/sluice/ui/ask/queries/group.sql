-- The closing of a group and the batch and answer of its step.
WITH
    b AS (SELECT step, batched_at FROM step_batches FINAL WHERE run_id = {run:String} AND incarnation = {incarnation:UInt32} AND step = {step:UInt64}),
    u AS (SELECT step, min(published_at) AS answered_at, max(policy_version) AS version FROM policy_updates FINAL WHERE run_id = {run:String} AND incarnation = {incarnation:UInt32} AND step = {step:UInt64} GROUP BY step)
SELECT g.question_id AS question_id, g.closing AS closing, g.reason AS reason, g.detail AS detail, g.group_size AS group_size, g.graded AS graded, g.missing AS missing, g.reward_mean AS reward_mean,
    g.opened_at AS opened_at, g.closed_at AS closed_at, b.batched_at AS batched_at, u.answered_at AS answered_at, u.version AS policy_version_after
FROM (SELECT * FROM groups FINAL WHERE run_id = {run:String} AND incarnation = {incarnation:UInt32} AND step = {step:UInt64} AND slot = {slot:UInt32}) AS g
LEFT JOIN b ON b.step = g.step
LEFT JOIN u ON u.step = g.step
LIMIT 1
SETTINGS join_use_nulls = 1;
