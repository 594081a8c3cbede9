-- How does the policy use the tool, step by step? Denominators: view step_summary.
SELECT step, code_call_rate, code_calls_mean, turns_mean, valid_tool_call_rate, self_correction_rate, exec_ok_rate, exec_error_rate, exec_timeout_rate, exec_latency_ms
FROM step_summary
WHERE run_id = {run:String}
ORDER BY incarnation, step;
