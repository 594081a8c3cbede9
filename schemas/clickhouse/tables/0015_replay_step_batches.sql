-- One row per step that a replay batched again. No trainer saw it. Beside step_batches, never in it.
--
-- Written from topic ppo-batches (StepBatch) of a replay. event_time is batched_at, which
-- a replay takes over from what was recorded.
CREATE TABLE IF NOT EXISTS replay_step_batches
(
    replay_id        LowCardinality(String),
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
ORDER BY (replay_id, run_id, incarnation, step)
SETTINGS non_replicated_deduplication_window = 10000;
