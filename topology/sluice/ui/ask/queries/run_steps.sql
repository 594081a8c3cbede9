-- The curves of a run and where the time of its steps went: the rows of the views
-- step_summary and step_phases for one run, of the newest incarnation of each step.
-- Those say what each column is over; a test holds this against them. It is written out
-- because it need not join what it can look up: which copies do not count are few.
WITH
    closed AS (SELECT incarnation, step, slot, sample_index, copy AS closed_copy, 1 AS found FROM group_fates FINAL WHERE run_id = {run:String}),
    -- Copies that no closing names: second ones, late ones, and those of open groups.
    unnamed AS
    (
        SELECT incarnation, step, slot, sample_index, copy, found
        FROM (SELECT incarnation, step, slot, sample_index, copy FROM trajectories FINAL WHERE run_id = {run:String} AND mode = 'train') AS t
        LEFT JOIN closed USING (incarnation, step, slot, sample_index)
        WHERE found = 0 OR closed_copy != copy
    ),
    taken AS
    (
        SELECT incarnation, step, slot, sample_index, argMax(copy, (graded, event_time)) AS taken_copy
        FROM group_members FINAL
        WHERE run_id = {run:String} AND (incarnation, step, slot, sample_index) IN (SELECT incarnation, step, slot, sample_index FROM unnamed WHERE found = 0)
        GROUP BY incarnation, step, slot, sample_index
    ),
    uncounted AS
    (
        SELECT incarnation, step, slot, sample_index, copy
        FROM unnamed LEFT JOIN taken USING (incarnation, step, slot, sample_index)
        WHERE found = 1 OR taken_copy NOT IN (0, copy)
    ),
    t AS
    (
        SELECT incarnation, step,
            count() AS n, countIf(graded) AS n_graded, sumIf(reward, graded) AS reward_sum, countIf(graded AND correct) AS n_correct, countIf(graded AND valid_format) AS boxed,
            sumIf(code_calls, graded) AS n_calls, sumIf(tool_call_turns, graded) AS n_call_turns, sumIf(tool_turns, graded) AS n_tool_turns, countIf(graded AND code_calls > 0) AS callers, sumIf(turns, graded) AS n_turns,
            countIf(graded AND first_outcome NOT IN ('', 'ok')) AS failed_first, countIf(graded AND first_outcome NOT IN ('', 'ok') AND executions > 1) AS n_retried,
            countIf(graded AND first_outcome NOT IN ('', 'ok') AND has(execution_outcomes, 'ok')) AS n_mended, countIf(graded AND first_outcome NOT IN ('', 'ok') AND executions > 1 AND correct) AS n_corrected,
            sumIf(length(execution_outcomes), graded) AS n_executions, sumIf(countEqual(execution_outcomes, 'ok'), graded) AS n_ok, sumIf(countEqual(execution_outcomes, 'timeout'), graded) AS n_timeouts,
            sumIf(arraySum(execution_wall_ms), graded) AS wall, quantileExactArrayIf(0.99)(execution_wall_ms, graded) AS wall_p99, sumIf(trajectory_tokens, graded) AS tokens,
            countIf(policy_tokens > 0) AS with_version, minIf(policy_version_min, policy_tokens > 0) AS version_min, maxIf(policy_version_max, policy_tokens > 0) AS version_max,
            min(fed_at) AS fed, min(started_at) AS first_start, max(ended_at) AS last_end
        FROM trajectories FINAL
        WHERE run_id = {run:String} AND mode = 'train' AND (incarnation, step, slot, sample_index, copy) NOT IN uncounted
        GROUP BY incarnation, step
    ),
    trained AS
    (
        SELECT incarnation, step, count() AS n_trained, sum(reward) AS trained_reward_sum
        FROM (SELECT incarnation, step, slot, sample_index, copy, reward FROM trajectories FINAL WHERE run_id = {run:String} AND mode = 'train')
        WHERE (incarnation, step, slot, sample_index, copy) IN (SELECT incarnation, step, slot, sample_index, copy FROM batch_members FINAL WHERE run_id = {run:String} AND fate = 'trained')
        GROUP BY incarnation, step
    ),
    g AS (SELECT incarnation, step, countIf(closing = 'used') AS used, countIf(closing = 'degenerate') AS degenerate, countIf(closing = 'dropped') AS dropped FROM groups FINAL WHERE run_id = {run:String} AND mode = 'train' GROUP BY incarnation, step),
    b AS (SELECT incarnation, step, loss_tokens, padded_tokens, batched_at, 1 AS found FROM step_batches FINAL WHERE run_id = {run:String}),
    u AS (SELECT incarnation, step, argMax(policy_version, event_time) AS version, min(published_at) AS answered, 1 AS found FROM policy_updates FINAL WHERE run_id = {run:String} GROUP BY incarnation, step),
    keys AS (SELECT incarnation, step FROM trajectories WHERE run_id = {run:String} AND mode = 'train' UNION DISTINCT SELECT incarnation, step FROM g UNION DISTINCT SELECT incarnation, step FROM b),
    rows AS
    (
        SELECT keys.incarnation AS incarnation, keys.step AS step, t.* EXCEPT (incarnation, step), trained.n_trained AS n_trained, trained.trained_reward_sum AS trained_reward_sum, g.used AS used, g.degenerate AS degenerate, g.dropped AS dropped,
            b.found AS batched, b.loss_tokens AS b_loss_tokens, b.padded_tokens AS b_padded_tokens, b.batched_at AS batched_at, u.found AS answered, u.version AS version_after, u.answered AS answered_at,
            leadInFrame(t.first_start) OVER w AS next_start, lagInFrame(u.answered) OVER w AS answered_before
        FROM keys
        LEFT JOIN t ON t.incarnation = keys.incarnation AND t.step = keys.step
        LEFT JOIN trained ON trained.incarnation = keys.incarnation AND trained.step = keys.step
        LEFT JOIN g ON g.incarnation = keys.incarnation AND g.step = keys.step
        LEFT JOIN b ON b.incarnation = keys.incarnation AND b.step = keys.step
        LEFT JOIN u ON u.incarnation = keys.incarnation AND u.step = keys.step
        WINDOW w AS (PARTITION BY keys.incarnation ORDER BY keys.step ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
    )
SELECT step, incarnation, CAST(batched = 1 AS Bool) AS closed, n AS trajectories, n_graded AS graded,
    if(n = 0, NULL, n_graded / n) AS graded_share, if(n_graded = 0, NULL, reward_sum / n_graded) AS reward_mean, if(n_trained = 0, NULL, trained_reward_sum / n_trained) AS reward_mean_trained,
    if(n_graded = 0, NULL, n_correct / n_graded) AS correct_rate, if(n_graded = 0, NULL, boxed / n_graded) AS valid_box_rate,
    if(n_call_turns = 0, NULL, n_calls / n_call_turns) AS valid_tool_call_rate, if(n_call_turns = 0, NULL, n_tool_turns / n_call_turns) AS tool_call_share_wellformed,
    if(n_graded = 0, NULL, callers / n_graded) AS code_call_rate, if(n_graded = 0, NULL, n_calls / n_graded) AS code_calls_mean, if(n_graded = 0, NULL, n_turns / n_graded) AS turns_mean,
    failed_first AS first_failed, if(failed_first = 0, NULL, n_corrected / failed_first) AS self_correction_rate, if(failed_first = 0, NULL, n_mended / failed_first) AS mended_rate, if(n_retried = 0, NULL, n_corrected / n_retried) AS retry_correct_rate,
    n_executions AS executions, if(n_executions = 0, NULL, n_ok / n_executions) AS exec_ok_rate, if(n_executions = 0, NULL, (n_executions - n_ok - n_timeouts) / n_executions) AS exec_error_rate, if(n_executions = 0, NULL, n_timeouts / n_executions) AS exec_timeout_rate,
    if(n_executions = 0, NULL, wall / n_executions) AS exec_latency_ms, if(n_executions = 0, NULL, wall_p99) AS exec_latency_p99_ms,
    used AS groups_used, degenerate AS groups_degenerate, dropped AS groups_dropped, if(used + degenerate = 0, NULL, degenerate / (used + degenerate)) AS degenerate_group_rate,
    if(n_graded = 0, NULL, tokens / n_graded) AS trajectory_tokens_mean, if(batched = 0, NULL, b_loss_tokens) AS loss_tokens, if(batched = 0, NULL, b_padded_tokens) AS padded_tokens,
    if(with_version = 0, NULL, version_min) AS policy_version_min, if(with_version = 0, NULL, version_max) AS policy_version_max, if(answered = 0, NULL, version_after) AS policy_version_after,
    dateDiff('microsecond', first_start, last_end) / 1000 AS rollout_ms, dateDiff('microsecond', last_end, batched_at) / 1000 AS grouping_ms, dateDiff('microsecond', batched_at, answered_at) / 1000 AS training_ms,
    if(isNull(last_end) OR isNull(next_start), NULL, greatest(0, dateDiff('microsecond', last_end, next_start) / 1000)) AS sampler_idle_ms,
    if(isNull(answered_before) OR isNull(batched_at), NULL, greatest(0, dateDiff('microsecond', answered_before, batched_at) / 1000)) AS trainer_idle_ms
FROM rows
ORDER BY step, incarnation DESC
LIMIT 1 BY step
SETTINGS join_use_nulls = 0;
