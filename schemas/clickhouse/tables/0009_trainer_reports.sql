-- One row per report of the trainer.
--
-- Written from topic trainer-reports. event_time is reported_at.
CREATE TABLE IF NOT EXISTS trainer_reports
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
    skipped          Bool,
    loss             Float64,
    ratio_mean       Float64,
    ratio_max        Float64,
    clip_fraction_low Float64,  -- share of loss tokens
    clip_fraction_high Float64, -- share of loss tokens
    entropy          Float64, -- nats per sampled token
    gradient_norm    Float64,
    data             UInt32,
    loss_tokens      UInt64,
    duration_ms      Float64,
    extra            Map(LowCardinality(String), Float64),
    reported_at      Nullable(DateTime64(6, 'UTC'))
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(event_time)
ORDER BY (run_id, incarnation, step, source_topic, source_partition, source_offset)
SETTINGS non_replicated_deduplication_window = 10000;
