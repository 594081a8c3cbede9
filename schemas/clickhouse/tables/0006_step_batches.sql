-- One row per step that was handed to the trainer, also with nothing to train on.
--
-- Written from topic ppo-batches (StepBatch). event_time is batched_at.
CREATE TABLE IF NOT EXISTS step_batches
(
    -- Where the record lies in Kafka.
    source_topic     LowCardinality(String),
    source_partition Int32,
    source_offset    Int64,
    event_time       DateTime64(6, 'UTC') CODEC(Delta, ZSTD),
    run_id           LowCardinality(String),
    incarnation      UInt32,
    step             UInt64,
    micro_batches    UInt32,
    n                UInt32, -- graded members of used and degenerate groups
    clip_low         Float64,
    clip_high        Float64,
    token_reduction  LowCardinality(String),
    policy_version_min UInt32,
    policy_version_max UInt32,
    groups_used      UInt32,
    groups_degenerate UInt32,
    groups_dropped   UInt32,
    data             UInt32,
    loss_tokens      UInt64,
    padded_tokens    UInt64,
    batched_at       Nullable(DateTime64(6, 'UTC'))
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(event_time)
ORDER BY (run_id, incarnation, step, source_topic)
SETTINGS non_replicated_deduplication_window = 10000;
