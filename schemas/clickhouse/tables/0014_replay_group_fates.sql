-- One row per place of a group that a replay closed again, with its new advantage. Beside group_fates, never in it.
--
-- Written from topic grouped (GroupClosed) of a replay. event_time is closed_at, which
-- a replay takes over from what was recorded.
CREATE TABLE IF NOT EXISTS replay_group_fates
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
    copy             UInt64, -- 0 for a member that never arrived
    mode             LowCardinality(String),
    fate             LowCardinality(String), -- used, degenerate, ungraded, short_group, missing
    reward           Float64,
    advantage        Float64
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(event_time)
ORDER BY (replay_id, run_id, incarnation, step, slot, sample_index)
SETTINGS non_replicated_deduplication_window = 10000;
