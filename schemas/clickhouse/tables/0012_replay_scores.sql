-- One row per trajectory that a replay scored again. The original's row stays in
-- trajectories: the two have the same place and copy.
--
-- Written from topic scored of a replay (metrics-writer --replay-id). event_time is
-- scored_at, which a replay takes over from what was recorded.
CREATE TABLE IF NOT EXISTS replay_scores
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
    question_id      String,
    data_source      LowCardinality(String),
    mode             LowCardinality(String), -- train, eval
    -- The reward; as in trajectories.
    graded           Bool,
    ungraded_reason  String,
    reward           Float64, -- 0 where graded is false: never average it then
    correct          Bool,
    valid_format     Bool,
    answer           String,
    verdict          LowCardinality(String),
    verdict_method   LowCardinality(String),
    verdict_reason   String,
    gold_read        String,
    pred_read        String,
    scorer           LowCardinality(String),
    scorer_version   LowCardinality(String),
    score_names      Array(LowCardinality(String)),
    score_versions   Array(LowCardinality(String)),
    score_rewards    Array(Float64),
    score_errors     Array(String)
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(event_time)
ORDER BY (replay_id, run_id, incarnation, step, slot, sample_index, copy)
SETTINGS non_replicated_deduplication_window = 10000;
