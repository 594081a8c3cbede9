-- One row per step of training (mode train), with these denominators. NULL where the
-- denominator is 0.
--
--   closed               the step was handed to the trainer
--   trajectories         sampled ones that count: all fates but duplicate and late
--   graded, ungraded     of trajectories
--   graded_share         graded / trajectories. Stands beside every rate below, which
--                        are over graded members only: a failure of the
--                        infrastructure has no reward and is in no mean
--   reward_mean          sum of reward / graded
--   reward_mean_trained  the same over trained ones: what the gradient saw
--   correct_rate         correct / graded
--   valid_box_rate       final text holds a readable box / graded
--   valid_tool_call_rate code calls / turns whose text contains <tool_call>, of graded
--   code_call_rate       graded with at least one code call / graded
--   code_calls_mean      code calls / graded
--   turns_mean           turns / graded
--   self_correction_rate first execution failed, executed again, ended correct / first
--                        execution failed, of graded; NULL if none failed
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
            countIf(counted AND graded AND first_outcome NOT IN ('', 'ok') AND executions > 1 AND correct) AS corrected,
            sumIf(trajectory_tokens, counted AND graded) AS tokens,
            minIf(policy_version_min, counted AND policy_tokens > 0) AS version_min,
            maxIf(policy_version_max, counted AND policy_tokens > 0) AS version_max
        FROM trajectory_fates
        WHERE mode = 'train'
        GROUP BY run_id, incarnation, step
    ),
    e AS
    (
        SELECT
            run_id, incarnation, step,
            count() AS executions,
            countIf(outcome = 'ok') AS ok,
            countIf(outcome = 'timeout') AS timeouts,
            avg(wall_ms) AS latency,
            quantileExact(0.99)(wall_ms) AS latency_p99
        FROM turns FINAL
        WHERE mode = 'train' AND graded AND outcome != ''
          AND (run_id, incarnation, step, slot, sample_index, copy) NOT IN
              (SELECT run_id, incarnation, step, slot, sample_index, copy FROM trajectory_fates WHERE NOT counted)
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
    if(t.n_tool_call_turns = 0, NULL, t.n_code_calls / t.n_tool_call_turns) AS valid_tool_call_rate,
    if(t.n_graded = 0, NULL, t.callers / t.n_graded) AS code_call_rate,
    if(t.n_graded = 0, NULL, t.n_code_calls / t.n_graded) AS code_calls_mean,
    if(t.n_graded = 0, NULL, t.n_turns / t.n_graded) AS turns_mean,
    if(t.failed_first = 0, NULL, t.corrected / t.failed_first) AS self_correction_rate,
    e.executions AS executions,
    if(e.executions = 0, NULL, e.ok / e.executions) AS exec_ok_rate,
    if(e.executions = 0, NULL, (e.executions - e.ok - e.timeouts) / e.executions) AS exec_error_rate,
    if(e.executions = 0, NULL, e.timeouts / e.executions) AS exec_timeout_rate,
    if(e.executions = 0, NULL, e.latency) AS exec_latency_ms,
    if(e.executions = 0, NULL, e.latency_p99) AS exec_latency_p99_ms,
    g.used AS groups_used,
    g.degenerate AS groups_degenerate,
    g.dropped AS groups_dropped,
    if(g.used + g.degenerate = 0, NULL, g.degenerate / (g.used + g.degenerate)) AS degenerate_group_rate,
    if(t.n_graded = 0, NULL, t.tokens / t.n_graded) AS trajectory_tokens_mean,
    if(b.found = 0, NULL, b.micro_batches) AS micro_batches,
    if(b.found = 0, NULL, b.loss_tokens) AS loss_tokens,
    if(b.found = 0, NULL, b.padded_tokens) AS padded_tokens,
    multiIf(u.found = 1, NOT u.trained, b.found = 1, b.micro_batches = 0, NULL) AS update_skipped,
    t.version_min AS policy_version_min,
    t.version_max AS policy_version_max,
    if(u.found = 0, NULL, u.version) AS policy_version_after
FROM keys AS k
LEFT JOIN t ON t.run_id = k.run_id AND t.incarnation = k.incarnation AND t.step = k.step
LEFT JOIN e ON e.run_id = k.run_id AND e.incarnation = k.incarnation AND e.step = k.step
LEFT JOIN g ON g.run_id = k.run_id AND g.incarnation = k.incarnation AND g.step = k.step
LEFT JOIN b ON b.run_id = k.run_id AND b.incarnation = k.incarnation AND b.step = k.step
LEFT JOIN u ON u.run_id = k.run_id AND u.incarnation = k.incarnation AND u.step = k.step
SETTINGS join_use_nulls = 0;
