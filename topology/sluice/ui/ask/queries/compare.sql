-- The curves of several runs, a row per run and step of its newest incarnation.
SELECT run_id, step, incarnation, reward_mean, correct_rate, valid_tool_call_rate, code_calls_mean, self_correction_rate, mended_rate, trajectory_tokens_mean, degenerate_group_rate
FROM step_summary
WHERE run_id IN {runs:Array(String)}
ORDER BY run_id, step, incarnation DESC
LIMIT 1 BY run_id, step;
