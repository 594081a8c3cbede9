-- What the policy did, per incarnation and version, as far as it can be said of one
-- version: a trajectory belongs to the version that sampled its last token. After a
-- roll-back version 3 of the new incarnation is another policy than version 3 was.
-- Population: mode train; trajectories that count and have a policy token.
--
--   trajectories         of that population
--   graded_share         graded / trajectories
--   correct_rate         correct / graded: beside graded_share, never one number
--   reward_mean          sum of reward / graded
--   reward_mean_trained  sum of reward of trained / trained
--   trained_share        trained / graded
--   self_fix_rate        first execution failed, executed again, ended correct / first
--                        execution failed, of graded; NULL if none failed
--   retry_rate           first execution failed, executed again / first execution failed
--   protocol_fault_share ended as protocol_fault (tokens that do not continue the
--                        prompt, unequal lengths) / trajectories
--   code_length_mean     characters of code / turns that called the tool, of graded
CREATE OR REPLACE VIEW version_summary AS
WITH
    t AS
    (
        SELECT
            run_id,
            incarnation,
            policy_version_max AS policy_version,
            count() AS trajectories,
            countIf(graded) AS n_graded,
            countIf(graded AND correct) AS n_correct,
            sumIf(reward, graded) AS reward_sum,
            countIf(fate = 'trained') AS trained,
            sumIf(reward, fate = 'trained') AS trained_reward_sum,
            countIf(graded AND first_outcome NOT IN ('', 'ok')) AS failed_first,
            countIf(graded AND first_outcome NOT IN ('', 'ok') AND executions > 1) AS retried,
            countIf(graded AND first_outcome NOT IN ('', 'ok') AND executions > 1 AND correct) AS corrected,
            countIf(end_reason = 'protocol_fault') AS faults
        FROM trajectory_fates
        WHERE counted AND mode = 'train' AND policy_tokens > 0
        GROUP BY run_id, incarnation, policy_version
    ),
    c AS
    (
        SELECT run_id, incarnation, policy_version_max AS policy_version, avg(lengthUTF8(code)) AS code_length, count() AS calls
        FROM turns FINAL
        WHERE mode = 'train' AND graded AND kind = 'tool'
        GROUP BY run_id, incarnation, policy_version
    )
SELECT
    t.run_id AS run_id,
    t.incarnation AS incarnation,
    t.policy_version AS policy_version,
    t.trajectories AS trajectories,
    t.n_graded AS graded,
    t.n_graded / t.trajectories AS graded_share,
    if(t.n_graded = 0, NULL, t.n_correct / t.n_graded) AS correct_rate,
    if(t.n_graded = 0, NULL, t.reward_sum / t.n_graded) AS reward_mean,
    if(t.trained = 0, NULL, t.trained_reward_sum / t.trained) AS reward_mean_trained,
    if(t.n_graded = 0, NULL, t.trained / t.n_graded) AS trained_share,
    if(t.failed_first = 0, NULL, t.retried / t.failed_first) AS retry_rate,
    if(t.failed_first = 0, NULL, t.corrected / t.failed_first) AS self_fix_rate,
    t.faults / t.trajectories AS protocol_fault_share,
    if(c.calls = 0, NULL, c.code_length) AS code_length_mean
FROM t
LEFT JOIN c ON c.run_id = t.run_id AND c.incarnation = t.incarnation AND c.policy_version = t.policy_version
SETTINGS join_use_nulls = 0;
