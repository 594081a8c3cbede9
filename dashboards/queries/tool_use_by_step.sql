-- How does the policy use the tool, step by step? Denominators: view step_summary.
-- A step that was remade after a roll-back is shown as remade.
SELECT step, code_call_rate, code_calls_mean, turns_mean, valid_tool_call_rate, tool_call_share_wellformed, self_correction_rate, mended_rate, retry_correct_rate, exec_ok_rate, exec_error_rate, exec_timeout_rate, exec_latency_ms
FROM step_summary
WHERE run_id = {run:String}
ORDER BY step, incarnation DESC
LIMIT 1 BY step;
