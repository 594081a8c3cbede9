-- The questions of a run: how often each was tried and solved, over graded members of
-- closed groups of mode train. flips is how often two tries in a row, by step, had another share
-- of right answers above and below one half. sort is rate, attempts or flips.
-- default sort=rate only= text= limit=200 mode=train
WITH t AS
(
    SELECT question_id, incarnation, step, slot, any(substringUTF8(question, 1, 200)) AS question_begins, countIf(graded) AS n, countIf(graded AND correct) AS right_answers,
        countIf(NOT graded) AS ungraded, sumIf(reward, graded) AS reward, sumIf(code_calls, graded) AS calls
    FROM trajectories FINAL
    WHERE run_id = {run:String} AND mode = {mode:String}
    GROUP BY question_id, incarnation, step, slot
)
SELECT question_id, any(question_begins) AS question_begins, count() AS groups_seen, sum(n) AS attempts, sum(t.right_answers) AS right_answers, sum(t.ungraded) AS ungraded,
    if(attempts = 0, NULL, right_answers / attempts) AS correct_rate, if(attempts = 0, NULL, sum(reward) / attempts) AS reward_mean, if(attempts = 0, NULL, sum(calls) / attempts) AS calls_mean,
    arrayMap(p -> p.2, arraySort(groupArray((incarnation, if(n = 0, NULL, t.right_answers / n), step)))) AS rates,
    arrayCount((a, b) -> (a >= 0.5) != (b >= 0.5), arrayPopBack(rates), arrayPopFront(rates)) AS flips,
    min(step) AS first_step, max(step) AS last_step
FROM t
GROUP BY question_id
HAVING ({only:String} = '' OR ({only:String} = 'never' AND attempts > 0 AND right_answers = 0) OR ({only:String} = 'always' AND attempts > 0 AND right_answers = attempts)
        OR ({only:String} = 'sometimes' AND right_answers > 0 AND right_answers < attempts))
    AND ({text:String} = '' OR positionCaseInsensitiveUTF8(question_begins, {text:String}) > 0 OR question_id = {text:String})
ORDER BY multiIf({sort:String} = 'attempts', -toFloat64(attempts), {sort:String} = 'flips', -toFloat64(flips), ifNull(correct_rate, 2)), attempts DESC, question_id
LIMIT {limit:UInt32};
