-- A page of a run's closed groups, the newest step first, behind the place of the page
-- before. Rewards are those of the members that count at the closing, in order; NULL for one that
-- was not graded or never came.
-- default from=-1 to=-1 question= closing= reason= mode= a_incarnation=-1 a_step=0 a_slot=0 limit=100
WITH
    page AS
    (
        SELECT incarnation, step, slot, question_id, mode, closing, reason, detail, group_size, graded, missing, reward_mean, opened_at, closed_at
        FROM groups
        WHERE run_id = {run:String}
            AND ({from:Int64} < 0 OR step >= {from:Int64})
            AND ({to:Int64} < 0 OR step <= {to:Int64})
            AND ({question:String} = '' OR question_id = {question:String})
            AND ({closing:String} = '' OR closing = {closing:String})
            AND ({reason:String} = '' OR reason = {reason:String})
            AND ({mode:String} = '' OR mode = {mode:String})
            AND ({a_incarnation:Int64} < 0
                OR (incarnation, step) < ({a_incarnation:Int64}, {a_step:UInt64})
                OR ((incarnation, step) = ({a_incarnation:Int64}, {a_step:UInt64}) AND slot > {a_slot:UInt32}))
        ORDER BY incarnation DESC, step DESC, slot
        LIMIT 1 BY incarnation, step, slot
        LIMIT {limit:UInt32}
    ),
    f AS
    (
        SELECT incarnation, step, slot, arrayMap(p -> p.2, arraySort(groupArray((sample_index, if(fate IN ('ungraded', 'missing'), NULL, reward))))) AS rewards
        FROM group_fates FINAL
        WHERE run_id = {run:String} AND (incarnation, step, slot) IN (SELECT incarnation, step, slot FROM page)
        GROUP BY incarnation, step, slot
    )
SELECT page.*, f.rewards AS rewards
FROM page LEFT JOIN f USING (incarnation, step, slot)
ORDER BY incarnation DESC, step DESC, slot
SETTINGS join_use_nulls = 0;
