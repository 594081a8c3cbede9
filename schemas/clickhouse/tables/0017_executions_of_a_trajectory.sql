-- What a trajectory's executions came to, in its own row, so that questions about steps
-- need not read turns. Rows of before have 0 and empty arrays.
--
--   tool_turns           turns that are one well-formed call (kind tool)
--   execution_outcomes   of each execution in order: ok, error, timeout, …
--   execution_wall_ms    of each execution, waiting not included
ALTER TABLE trajectories
    ADD COLUMN IF NOT EXISTS tool_turns UInt32 AFTER tool_call_turns,
    ADD COLUMN IF NOT EXISTS execution_outcomes Array(LowCardinality(String)) AFTER first_outcome,
    ADD COLUMN IF NOT EXISTS execution_wall_ms Array(Float32) AFTER execution_outcomes;
