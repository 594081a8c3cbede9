-- One row per run and mode: training and evaluation are different populations.
-- All incarnations of the run are in it.
--
--   steps                steps handed to the trainer; 0 for evaluation
--   trajectories         sampled ones that count: one for each place somebody arrived at
--   code_calls           of those: calls whose observation was appended; executions: runs
--   duplicates_dropped   graded copies beside the one that holds the place
--   late                 came when their group was closed without anybody at their place
--   missing              places of closed groups at which nobody ever arrived
--   trained … pending    of trajectories, by fate; they add up with ungraded to it
--   second_copies        work done again at a place that another copy holds, whatever its fate
--   graded_share         graded / trajectories
--   reward_mean          sum of reward / graded
--   correct_rate         correct / graded
--   dead_letters         whose header names this run, whatever their mode: the same in its
--                        rows. Those without a readable header belong to no run: they are
--                        in table dead_letters only
--   first_at, last_at    first feeding and last event of any of its trajectories and steps
CREATE OR REPLACE VIEW run_summary AS
WITH
    t AS
    (
        SELECT
            run_id,
            mode,
            uniqExact(incarnation) AS incarnations,
            countIf(counted) AS trajectories,
            countIf(counted AND graded) AS n_graded,
            sumIf(code_calls, counted) AS n_code_calls,
            sumIf(executions, counted) AS n_executions,
            countIf(fate = 'duplicate') AS duplicates_dropped,
            countIf(fate = 'late') AS late,
            countIf(fate = 'trained' AND counted) AS trained,
            countIf(fate = 'zero_advantage' AND counted) AS zero_advantage,
            countIf(fate = 'degenerate' AND counted) AS degenerate,
            countIf(fate = 'ungraded' AND counted) AS ungraded,
            countIf(NOT counted) AS second_copies,
            countIf(fate = 'short_group' AND counted) AS short_group,
            countIf(fate = 'stale' AND counted) AS stale,
            countIf(fate = 'too_long' AND counted) AS too_long,
            countIf(fate = 'no_policy_tokens' AND counted) AS no_policy_tokens,
            countIf(fate = 'custody' AND counted) AS custody,
            countIf(fate = 'evaluated' AND counted) AS evaluated,
            countIf(fate = 'pending' AND counted) AS pending,
            sumIf(reward, counted AND graded) AS reward_sum,
            countIf(counted AND graded AND correct) AS n_correct,
            min(coalesce(fed_at, event_time)) AS first_at,
            max(event_time) AS last_at
        FROM trajectory_fates
        GROUP BY run_id, mode
    ),
    s AS (SELECT run_id, uniqExact(incarnation, step) AS steps, max(event_time) AS last_at FROM step_batches FINAL GROUP BY run_id),
    m AS (SELECT run_id, mode, countIf(fate = 'missing') AS missing FROM group_fates FINAL GROUP BY run_id, mode),
    d AS (SELECT run_id, count() AS dead_letters FROM dead_letters FINAL GROUP BY run_id)
SELECT
    t.run_id AS run_id,
    t.mode AS mode,
    t.incarnations AS incarnations,
    s.steps AS steps,
    t.trajectories AS trajectories,
    t.n_graded AS graded,
    t.n_code_calls AS code_calls,
    t.n_executions AS executions,
    t.duplicates_dropped AS duplicates_dropped,
    t.late AS late,
    t.second_copies AS second_copies,
    m.missing AS missing,
    t.trained AS trained,
    t.zero_advantage AS zero_advantage,
    t.degenerate AS degenerate,
    t.ungraded AS ungraded,
    t.short_group AS short_group,
    t.stale AS stale,
    t.too_long AS too_long,
    t.no_policy_tokens AS no_policy_tokens,
    t.custody AS custody,
    t.evaluated AS evaluated,
    t.pending AS pending,
    if(t.trajectories = 0, NULL, t.n_graded / t.trajectories) AS graded_share,
    if(t.n_graded = 0, NULL, t.reward_sum / t.n_graded) AS reward_mean,
    if(t.n_graded = 0, NULL, t.n_correct / t.n_graded) AS correct_rate,
    d.dead_letters AS dead_letters,
    t.first_at AS first_at,
    greatest(t.last_at, s.last_at) AS last_at
FROM t
LEFT JOIN s ON s.run_id = t.run_id AND t.mode = 'train'
LEFT JOIN m ON m.run_id = t.run_id AND m.mode = t.mode
LEFT JOIN d ON d.run_id = t.run_id
SETTINGS join_use_nulls = 0;
