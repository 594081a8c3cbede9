-- Which questions does the policy not solve? correct_rate is right / graded over all
-- attempts of mode train that count.
SELECT question_id, countIf(graded) AS attempts, countIf(graded AND correct) AS right_answers, if(attempts = 0, NULL, right_answers / attempts) AS correct_rate
FROM trajectory_fates
WHERE run_id = {run:String} AND counted AND mode = 'train'
GROUP BY question_id
HAVING attempts > 0
ORDER BY correct_rate, attempts DESC
LIMIT 50;
