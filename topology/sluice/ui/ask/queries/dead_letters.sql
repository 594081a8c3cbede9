-- Records that could not be handled, the newest first: of one run and those whose header
-- names none; of all runs where none is named.
-- default run= limit=200
SELECT stage, failed_topic, failed_partition, toString(failed_offset) AS failed_offset, error_type, substringUTF8(error, 1, 2000) AS error, delivery_count,
    length(value) AS value_bytes, hex(substring(value, 1, 64)) AS value_begins, run_id, incarnation, step, slot, sample_index, question_id, failed_at, event_time,
    source_partition, toString(source_offset) AS source_offset
FROM dead_letters FINAL
WHERE {run:String} = '' OR run_id IN ({run:String}, '')
ORDER BY event_time DESC
LIMIT {limit:UInt32};
