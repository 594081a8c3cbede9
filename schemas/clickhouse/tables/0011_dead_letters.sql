-- One row per record that could not be handled. Its key and value are bytes as they
-- were.
--
-- Written from topic dead-letters. event_time is failed_at. A record given up twice
-- (the stage died before it could say that it was done) is one row.
CREATE TABLE IF NOT EXISTS dead_letters
(
    -- Where the record lies in Kafka.
    source_topic     LowCardinality(String),
    source_partition Int32,
    source_offset    Int64,
    event_time       DateTime64(6, 'UTC') CODEC(Delta, ZSTD),
    stage            LowCardinality(String), -- that gave up
    failed_topic     LowCardinality(String), -- where the record lies
    failed_partition Int32,
    failed_offset    Int64,
    error_type       LowCardinality(String),
    error            String,
    delivery_count   UInt32,
    key              String,
    value            String CODEC(ZSTD(3)),
    header_keys      Array(String),
    header_values    Array(String),
    -- What it stood for, where its header could be read: '' and 0 otherwise.
    run_id           LowCardinality(String),
    incarnation      UInt32,
    step             UInt64,
    slot             UInt32,
    sample_index     Nullable(UInt32),
    copy             UInt64,
    question_id      String,
    failed_at        Nullable(DateTime64(6, 'UTC'))
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(event_time)
ORDER BY (stage, failed_topic, failed_partition, failed_offset, source_topic)
SETTINGS non_replicated_deduplication_window = 10000;
