-- A page of a run's trajectories, the newest step first, behind the place of the page
-- before. All copies; what is filtered for is empty or below 0 where it is not.
-- after_text reads texts, so it takes longer than the other filters.
--
-- default incarnation=-1 from=-1 to=-1 slot=-1 question= mode= end= exception= outcome= correct=-1 graded=-1
-- default calls_from=-1 calls_to=-1 reward_from=-inf reward_to=inf text= version=-1
-- default a_incarnation=-1 a_step=0 a_slot=0 a_sample=0 a_copy=0 limit=100
SELECT incarnation, step, slot, sample_index, toString(trajectories.copy) AS copy, mode, question_id, substringUTF8(question, 1, 160) AS question_begins,
    end_reason, turns, code_calls, executions, execution_outcomes, first_outcome, policy_tokens, trajectory_tokens,
    policy_version_min, policy_version_max, graded, ungraded_reason, reward, correct, valid_format, substringUTF8(answer, 1, 80) AS answer, attempt, event_time
FROM trajectories
WHERE run_id = {run:String}
    AND ({incarnation:Int64} < 0 OR incarnation = {incarnation:Int64})
    AND ({from:Int64} < 0 OR step >= {from:Int64})
    AND ({to:Int64} < 0 OR step <= {to:Int64})
    AND ({slot:Int64} < 0 OR slot = {slot:Int64})
    AND ({question:String} = '' OR question_id = {question:String})
    AND ({mode:String} = '' OR mode = {mode:String})
    AND ({end:String} = '' OR end_reason = {end:String})
    AND ({outcome:String} = '' OR has(execution_outcomes, {outcome:String}))
    AND ({correct:Int64} < 0 OR (graded AND correct = ({correct:Int64} = 1)))
    AND ({graded:Int64} < 0 OR graded = ({graded:Int64} = 1))
    AND ({calls_from:Int64} < 0 OR code_calls >= {calls_from:Int64})
    AND ({calls_to:Int64} < 0 OR code_calls <= {calls_to:Int64})
    AND ({reward_from:Float64} = -inf OR (graded AND reward >= {reward_from:Float64}))
    AND ({reward_to:Float64} = inf OR (graded AND reward <= {reward_to:Float64}))
    AND ({version:Int64} < 0 OR (policy_version_min <= {version:Int64} AND policy_version_max >= {version:Int64} AND policy_tokens > 0))
    AND ({a_incarnation:Int64} < 0
        OR (incarnation, step) < ({a_incarnation:Int64}, {a_step:UInt64})
        OR ((incarnation, step) = ({a_incarnation:Int64}, {a_step:UInt64}) AND (slot, sample_index, trajectories.copy) > ({a_slot:UInt32}, {a_sample:UInt32}, {a_copy:UInt64})))
    AND ({exception:String} = '' OR (incarnation, step, slot, sample_index, trajectories.copy) IN (
        SELECT incarnation, step, slot, sample_index, copy FROM turns WHERE run_id = {run:String} AND exception = {exception:String} AND ({exception:String} != '')))
    AND ({text:String} = '' OR positionCaseInsensitiveUTF8(final_text, {text:String}) > 0 OR positionCaseInsensitiveUTF8(question, {text:String}) > 0)
ORDER BY incarnation DESC, step DESC, slot, sample_index, trajectories.copy
LIMIT 1 BY incarnation, step, slot, sample_index, trajectories.copy
LIMIT {limit:UInt32};
