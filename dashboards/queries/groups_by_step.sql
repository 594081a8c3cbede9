-- How many groups teach anything? Closed groups per step; the rate is degenerate over
-- used and degenerate ones.
-- A step that was remade after a roll-back is shown as remade.
SELECT step, groups_used, groups_degenerate, groups_dropped, degenerate_group_rate
FROM step_summary
WHERE run_id = {run:String}
ORDER BY step, incarnation DESC
LIMIT 1 BY step;
