-- One row per step of training, with these denominators. NULL where the denominator is 0.
-- Population: mode train; of trajectories, those that count. A step that a roll-back
-- remade has a row per incarnation.
--
--   closed               the step was handed to the trainer
--   trajectories         sampled ones that count: one for each place somebody arrived at
--   graded, ungraded     of trajectories
--   graded_share         graded / trajectories. Stands beside every rate below, which
--                        are over graded members only: a failure of the
--                        infrastructure has no reward and is in no mean
--   reward_mean          sum of reward / graded
--   reward_mean_trained  the same over trained ones: what the gradient saw
--   correct_rate         correct / graded
--   valid_box_rate       final text holds a readable box / graded
--   valid_tool_call_rate code calls / turns whose text contains <tool_call> (tool_call_turns),
--                        of graded. A call that a budget forbids is no code call, so it
--                        falls when budgets strike; beside it
--   tool_call_share_wellformed
--                        turns that are one well-formed call / tool_call_turns, of graded
--   code_call_rate       graded with at least one code call / graded
--   code_calls_mean      code calls / graded
--   turns_mean           turns / graded
--   first_failed         graded whose first execution failed; of these
--   retried              executed again; of these
--   mended               had a later execution that succeeded
--   corrected            ended correct
--   self_correction_rate corrected / first_failed. It counts 'failed, failed again, guessed
--                        right' too; beside it
--   mended_rate          mended / first_failed, and
--   retry_correct_rate   corrected / retried
--   exec_ok_rate, exec_error_rate, exec_timeout_rate
--                        by outcome / executions of graded; error is every failure of
--                        the program but the time-out, so that the three add up to 1
--   exec_latency_ms      mean wall time of those executions, waiting not included;
--   exec_latency_p99_ms  its 99th percentile
--   degenerate_group_rate  degenerate / (used + degenerate) groups: a dropped group was
--                        not judged
--   trajectory_tokens_mean prompt, policy and glue tokens / graded
--   loss_tokens, padded_tokens  of the whole step, as the batcher counted; NULL until closed
--   update_skipped       the trainer answered that nothing was trained; before its
--                        answer, whether there was nothing to train on; NULL until closed
CREATE OR REPLACE VIEW step_summary AS
WITH
    keys AS
    (
        SELECT run_id, incarnation, step FROM trajectories WHERE mode = 'train'
        UNION DISTINCT SELECT run_id, incarnation, step FROM groups WHERE mode = 'train'
        UNION DISTINCT SELECT run_id, incarnation, step FROM step_batches
    ),
    t AS
    (
        SELECT
            run_id, incarnation, step,
            countIf(counted) AS trajectories,
            countIf(counted AND graded) AS n_graded,
            countIf(NOT counted) AS duplicates,
            sumIf(reward, counted AND graded) AS reward_sum,
            countIf(fate = 'trained') AS trained,
            sumIf(reward, fate = 'trained') AS trained_reward_sum,
            countIf(counted AND graded AND correct) AS n_correct,
            countIf(counted AND graded AND valid_format) AS boxed,
            sumIf(code_calls, counted AND graded) AS n_code_calls,
            sumIf(tool_call_turns, counted AND graded) AS n_tool_call_turns,
            countIf(counted AND graded AND code_calls > 0) AS callers,
            sumIf(turns, counted AND graded) AS n_turns,
            countIf(counted AND graded AND first_outcome NOT IN ('', 'ok')) AS failed_first,
            countIf(counted AND graded AND first_outcome NOT IN ('', 'ok') AND executions > 1) AS n_retried,
            countIf(counted AND graded AND first_outcome NOT IN ('', 'ok') AND has(execution_outcomes, 'ok')) AS n_mended,
            countIf(counted AND graded AND first_outcome NOT IN ('', 'ok') AND executions > 1 AND correct) AS n_corrected,
            sumIf(tool_turns, counted AND graded) AS n_tool_turns,
            sumIf(length(execution_outcomes), counted AND graded) AS n_executions,
            sumIf(countEqual(execution_outcomes, 'ok'), counted AND graded) AS n_ok,
            sumIf(countEqual(execution_outcomes, 'timeout'), counted AND graded) AS n_timeouts,
            sumIf(arraySum(execution_wall_ms), counted AND graded) AS wall,
            quantileExactArrayIf(0.99)(execution_wall_ms, counted AND graded) AS wall_p99,
            sumIf(trajectory_tokens, counted AND graded) AS tokens,
            countIf(counted AND policy_tokens > 0) AS with_version,
            minIf(policy_version_min, counted AND policy_tokens > 0) AS version_min,
            maxIf(policy_version_max, counted AND policy_tokens > 0) AS version_max
        FROM trajectory_fates
        WHERE mode = 'train'
        GROUP BY run_id, incarnation, step
    ),
    g AS
    (
        SELECT run_id, incarnation, step, countIf(closing = 'used') AS used, countIf(closing = 'degenerate') AS degenerate, countIf(closing = 'dropped') AS dropped
        FROM groups FINAL
        WHERE mode = 'train'
        GROUP BY run_id, incarnation, step
    ),
    b AS (SELECT *, 1 AS found FROM step_batches FINAL),
    u AS
    (
        SELECT run_id, incarnation, step, argMax(trained, event_time) AS trained, argMax(policy_version, event_time) AS version, 1 AS found
        FROM policy_updates FINAL
        GROUP BY run_id, incarnation, step
    )
SELECT
    k.run_id AS run_id,
    k.incarnation AS incarnation,
    k.step AS step,
    CAST(b.found = 1 AS Bool) AS closed,
    t.trajectories AS trajectories,
    t.n_graded AS graded,
    toUInt64(t.trajectories - t.n_graded) AS ungraded,
    t.duplicates AS duplicates,
    if(t.trajectories = 0, NULL, t.n_graded / t.trajectories) AS graded_share,
    if(t.n_graded = 0, NULL, t.reward_sum / t.n_graded) AS reward_mean,
    if(t.trained = 0, NULL, t.trained_reward_sum / t.trained) AS reward_mean_trained,
    if(t.n_graded = 0, NULL, t.n_correct / t.n_graded) AS correct_rate,
    if(t.n_graded = 0, NULL, t.boxed / t.n_graded) AS valid_box_rate,
    t.n_code_calls AS code_calls,
    t.n_tool_call_turns AS tool_call_turns,
    if(t.n_tool_call_turns = 0, NULL, t.n_code_calls / t.n_tool_call_turns) AS valid_tool_call_rate,
    if(t.n_tool_call_turns = 0, NULL, t.n_tool_turns / t.n_tool_call_turns) AS tool_call_share_wellformed,
    if(t.n_graded = 0, NULL, t.callers / t.n_graded) AS code_call_rate,
    if(t.n_graded = 0, NULL, t.n_code_calls / t.n_graded) AS code_calls_mean,
    if(t.n_graded = 0, NULL, t.n_turns / t.n_graded) AS turns_mean,
    t.failed_first AS first_failed,
    t.n_retried AS retried,
    t.n_mended AS mended,
    t.n_corrected AS corrected,
    if(t.failed_first = 0, NULL, t.n_corrected / t.failed_first) AS self_correction_rate,
    if(t.failed_first = 0, NULL, t.n_mended / t.failed_first) AS mended_rate,
    if(t.n_retried = 0, NULL, t.n_corrected / t.n_retried) AS retry_correct_rate,
    t.n_executions AS executions,
    if(t.n_executions = 0, NULL, t.n_ok / t.n_executions) AS exec_ok_rate,
    if(t.n_executions = 0, NULL, (t.n_executions - t.n_ok - t.n_timeouts) / t.n_executions) AS exec_error_rate,
    if(t.n_executions = 0, NULL, t.n_timeouts / t.n_executions) AS exec_timeout_rate,
    if(t.n_executions = 0, NULL, t.wall / t.n_executions) AS exec_latency_ms,
    if(t.n_executions = 0, NULL, t.wall_p99) AS exec_latency_p99_ms,
    g.used AS groups_used,
    g.degenerate AS groups_degenerate,
    g.dropped AS groups_dropped,
    if(g.used + g.degenerate = 0, NULL, g.degenerate / (g.used + g.degenerate)) AS degenerate_group_rate,
    if(t.n_graded = 0, NULL, t.tokens / t.n_graded) AS trajectory_tokens_mean,
    if(b.found = 0, NULL, b.micro_batches) AS micro_batches,
    if(b.found = 0, NULL, b.loss_tokens) AS loss_tokens,
    if(b.found = 0, NULL, b.padded_tokens) AS padded_tokens,
    multiIf(u.found = 1, NOT u.trained, b.found = 1, b.micro_batches = 0, NULL) AS update_skipped,
    if(t.with_version = 0, NULL, t.version_min) AS policy_version_min,
    if(t.with_version = 0, NULL, t.version_max) AS policy_version_max,
    if(u.found = 0, NULL, u.version) AS policy_version_after
FROM keys AS k
LEFT JOIN t ON t.run_id = k.run_id AND t.incarnation = k.incarnation AND t.step = k.step
LEFT JOIN g ON g.run_id = k.run_id AND g.incarnation = k.incarnation AND g.step = k.step
LEFT JOIN b ON b.run_id = k.run_id AND b.incarnation = k.incarnation AND b.step = k.step
LEFT JOIN u ON u.run_id = k.run_id AND u.incarnation = k.incarnation AND u.step = k.step
SETTINGS join_use_nulls = 0;
