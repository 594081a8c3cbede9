-- What could not be handled? Of this run, and those whose header could not be read.
SELECT event_time, stage, failed_topic, failed_partition, failed_offset, error_type, substringUTF8(error, 1, 300) AS error_text
FROM dead_letters FINAL
WHERE run_id IN ({run:String}, '')
ORDER BY event_time DESC
LIMIT 100;
