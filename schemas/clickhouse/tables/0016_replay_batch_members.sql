-- One row per member that reached a replay's batch: packed, or why not. Beside batch_members, never in it.
--
-- Written from topic ppo-batches (StepBatch) of a replay. event_time is batched_at, which
-- a replay takes over from what was recorded.
CREATE TABLE IF NOT EXISTS replay_batch_members
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
    slot             UInt32,
    sample_index     UInt32,
    copy             UInt64,
    fate             LowCardinality(String), -- trained, zero_advantage, stale, too_long, no_policy_tokens
    detail           String,
    micro_batch      UInt32, -- of a trained member
    loss_tokens      UInt32,
    staleness        UInt32
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(event_time)
ORDER BY (replay_id, run_id, incarnation, step, slot, sample_index, copy)
SETTINGS non_replicated_deduplication_window = 10000;
