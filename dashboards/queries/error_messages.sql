-- What do the errors say? The last line of stderr of failed executions, the commonest
-- first. The text was written by programs of the policy. Mode train.
SELECT exception, substringUTF8(arrayLast(l -> l != '', splitByChar('\n', stderr)), 1, 200) AS last_line, count() AS executions, any(code) AS an_example
FROM turns FINAL
WHERE run_id = {run:String} AND mode = 'train' AND outcome NOT IN ('', 'ok')
GROUP BY exception, last_line
ORDER BY executions DESC
LIMIT 50;
