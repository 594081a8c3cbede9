-- One row per trajectory that was taken into its group: the first copy to reach the
-- grouper for its place.
--
-- Written from topic grouped (GroupMember). event_time is taken_at.
CREATE TABLE IF NOT EXISTS group_members
(
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
    attempt          UInt32,
    question_id      String,
    mode             LowCardinality(String),
    graded           Bool,
    reward           Float64,
    taken_at         Nullable(DateTime64(6, 'UTC'))
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(event_time)
ORDER BY (run_id, incarnation, step, slot, sample_index, copy, source_topic)
SETTINGS non_replicated_deduplication_window = 10000;
