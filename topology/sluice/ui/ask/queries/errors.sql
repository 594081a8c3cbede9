-- Failed executions in clusters: the exception and the last line of stderr with its
-- numbers, quoted words and addresses taken out. All copies of mode train. share is of
-- the run's executions; steps and counts are of up to 200 steps.
-- default from=-1 to=-1 exception= limit=100
WITH
    (SELECT count() FROM turns WHERE run_id = {run:String} AND mode = 'train' AND outcome != '' AND ({from:Int64} < 0 OR step >= {from:Int64}) AND ({to:Int64} < 0 OR step <= {to:Int64})) AS executions,
    e AS
    (
        SELECT step, outcome, exception, incarnation, slot, sample_index, copy, turn,
            arrayElement(splitByChar('\n', trim(TRAILING '\n\r ' FROM right(stderr, 2000))), -1) AS last_line,
            substringUTF8(replaceRegexpAll(replaceRegexpAll(replaceRegexpAll(last_line, '\'[^\']*\'|"[^"]*"', '\'…\''), '0x[0-9a-f]+', '0x…'), '-?[0-9]+(\\.[0-9]+)?', 'N'), 1, 160) AS shape
        FROM turns FINAL
        WHERE run_id = {run:String} AND mode = 'train' AND outcome NOT IN ('', 'ok')
            AND ({from:Int64} < 0 OR step >= {from:Int64}) AND ({to:Int64} < 0 OR step <= {to:Int64})
            AND ({exception:String} = '' OR exception = {exception:String})
    )
SELECT outcome, exception, shape, count() AS failures, failures / executions AS share, uniqExact(incarnation, step, slot, sample_index, copy) AS trajectories,
    min(step) AS first_step, max(step) AS last_step, any(substringUTF8(last_line, 1, 300)) AS an_example,
    argMin((incarnation, step, slot, sample_index, toString(copy), turn), step) AS first_seen,
    sumMap([step], [toUInt64(1)]) AS by_step
FROM e
GROUP BY outcome, exception, shape
ORDER BY failures DESC, shape
LIMIT {limit:UInt32};
