-- One row per group that a replay closed again. Beside groups, never in it.
--
-- Written from topic grouped (GroupClosed) of a replay. event_time is closed_at, which
-- a replay takes over from what was recorded.
CREATE TABLE IF NOT EXISTS replay_groups
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
    attempt          UInt32,
    question_id      String,
    data_source      LowCardinality(String),
    mode             LowCardinality(String),
    group_size       UInt32,
    groups_in_step   UInt32,
    closing          LowCardinality(String), -- used, degenerate, dropped
    reason           String,
    graded           UInt32,
    missing          UInt32, -- members that never arrived
    reward_mean      Float64, -- over graded members
    opened_at        Nullable(DateTime64(6, 'UTC')),
    closed_at        Nullable(DateTime64(6, 'UTC'))
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(event_time)
ORDER BY (replay_id, run_id, incarnation, step, slot)
SETTINGS non_replicated_deduplication_window = 10000;
