-- Why do tool calls go wrong? Failed executions per policy version by outcome and class
-- of exception; rate is of all executions sampled by that version.
SELECT incarnation, policy_version, outcome, exception, executions, rate
FROM tool_errors
WHERE run_id = {run:String} AND outcome != 'ok'
ORDER BY incarnation, policy_version, executions DESC;
