-- One row per answer of the trainer to a step.
--
-- Written from topic policy-updates. event_time is published_at.
CREATE TABLE IF NOT EXISTS policy_updates
(
    -- Where the record lies in Kafka.
    source_topic     LowCardinality(String),
    source_partition Int32,
    source_offset    Int64,
    event_time       DateTime64(6, 'UTC') CODEC(Delta, ZSTD),
    run_id           LowCardinality(String),
    incarnation      UInt32,
    step             UInt64,
    policy_version   UInt32,
    trained          Bool,
    inference_url    String,
    model            LowCardinality(String),
    published_at     Nullable(DateTime64(6, 'UTC'))
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(event_time)
ORDER BY (run_id, incarnation, step, source_topic, source_partition, source_offset)
SETTINGS non_replicated_deduplication_window = 10000;
