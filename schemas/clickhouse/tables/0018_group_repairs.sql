-- Why a group was closed by hand or what was wrong with it, which members were asked for
-- once more, and how many trajectories of a step ended by a fault of ours. Rows of before
-- have 0 and empty texts.
--
--   detail           what an operator or a check said of the closing
--   attempt          1 for a copy that came of a refill
--   refilled         the member was lost to infrastructure and asked for once more
--   end_reason       how the copy that holds the place ended
--   protocol_faults  the step's trajectories that ended as protocol_fault
--   infra_errors     and as infra_error
ALTER TABLE groups ADD COLUMN IF NOT EXISTS detail String;
ALTER TABLE group_fates
    ADD COLUMN IF NOT EXISTS attempt UInt32,
    ADD COLUMN IF NOT EXISTS refilled Bool,
    ADD COLUMN IF NOT EXISTS end_reason LowCardinality(String);
ALTER TABLE step_batches
    ADD COLUMN IF NOT EXISTS protocol_faults UInt32,
    ADD COLUMN IF NOT EXISTS infra_errors UInt32;
ALTER TABLE replay_groups ADD COLUMN IF NOT EXISTS detail String;
ALTER TABLE replay_group_fates
    ADD COLUMN IF NOT EXISTS attempt UInt32,
    ADD COLUMN IF NOT EXISTS refilled Bool,
    ADD COLUMN IF NOT EXISTS end_reason LowCardinality(String);
ALTER TABLE replay_step_batches
    ADD COLUMN IF NOT EXISTS protocol_faults UInt32,
    ADD COLUMN IF NOT EXISTS infra_errors UInt32;
