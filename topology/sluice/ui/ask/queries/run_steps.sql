-- The curves of a run: view step_summary says what each is over. The newest incarnation
-- of each step.
SELECT step, incarnation, closed, trajectories, graded, graded_share, reward_mean, reward_mean_trained, correct_rate, valid_box_rate,
    valid_tool_call_rate, tool_call_share_wellformed, code_call_rate, code_calls_mean, turns_mean,
    first_failed, retried, self_correction_rate, mended_rate, retry_correct_rate,
    executions, exec_ok_rate, exec_error_rate, exec_timeout_rate, exec_latency_ms, exec_latency_p99_ms,
    groups_used, groups_degenerate, groups_dropped, degenerate_group_rate, trajectory_tokens_mean, loss_tokens, padded_tokens, update_skipped,
    policy_version_min, policy_version_max, policy_version_after
FROM step_summary
WHERE run_id = {run:String}
ORDER BY step, incarnation DESC
LIMIT 1 BY step;
