-- Every sampled trajectory with what became of it. One row per trajectory (place and
-- copy); rates over survivors only would be wrong, so start from here.
--
-- fate, the first that holds:
--   what the batcher said     trained, zero_advantage, stale, too_long, no_policy_tokens, custody
--   what the grouper said     degenerate, ungraded, short_group
--   evaluated                 of an evaluation group: used, and never meant for training
--   duplicate                 graded, and another copy holds its place
--   late                      graded, but its group closed without anybody at its place
--   ungraded                  not graded, whether its group is closed or not
--   pending                   none of these yet
-- counted is true for the copy that holds its place, so that a place counts once however
-- often it was worked at: when the group is closed, the copy that its closing names; until
-- then a graded copy before an ungraded one. Duplicate and late ones never count, and
-- an ungraded one does not where another copy holds its place.
--
-- Population: all runs, incarnations and modes.
CREATE OR REPLACE VIEW trajectory_fates AS
WITH
    batched AS
    (
        SELECT run_id, incarnation, step, slot, sample_index, copy, fate AS batch_fate, detail AS fate_detail, loss_tokens, staleness
        FROM batch_members FINAL
    ),
    closed AS
    (
        SELECT run_id, incarnation, step, slot, sample_index, copy AS closed_copy, fate AS group_fate, advantage AS closed_advantage, 1 AS group_closed
        FROM group_fates FINAL
    ),
    -- The copy that holds a place in a group that is still open: a graded one before
    -- one that was lost and is made again.
    taken AS
    (
        SELECT run_id, incarnation, step, slot, sample_index, argMax(copy, (graded, event_time)) AS taken_copy
        FROM group_members FINAL
        GROUP BY run_id, incarnation, step, slot, sample_index
    )
SELECT
    * EXCEPT (prompt_tokens, question, reference_answer, final_text, batch_fate, closed_copy, group_fate, closed_advantage, group_closed, taken_copy),
    if(closed_copy = copy, closed_advantage, 0.) AS advantage,
    multiIf(
        batch_fate != '', batch_fate,
        closed_copy = copy AND group_fate = 'used', if(mode = 'eval', 'evaluated', 'pending'),
        closed_copy = copy, group_fate,
        NOT graded, 'ungraded',
        group_closed = 1 AND closed_copy = 0, 'late',
        group_closed = 1, 'duplicate',
        taken_copy != 0 AND taken_copy != copy, 'duplicate',
        'pending') AS fate,
    CAST(if(group_closed = 1, closed_copy = copy, taken_copy IN (0, copy)) AS Bool) AS counted
FROM (SELECT * FROM trajectories FINAL) AS t
LEFT JOIN batched USING (run_id, incarnation, step, slot, sample_index, copy)
LEFT JOIN closed USING (run_id, incarnation, step, slot, sample_index)
LEFT JOIN taken USING (run_id, incarnation, step, slot, sample_index)
SETTINGS join_use_nulls = 0;
