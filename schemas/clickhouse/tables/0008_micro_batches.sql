-- One row per micro-batch. The tokens themselves are in turns.
--
-- Written from topic ppo-batches (MicroBatch). event_time is the record's time.
CREATE TABLE IF NOT EXISTS micro_batches
(
    -- Where the record lies in Kafka.
    source_topic     LowCardinality(String),
    source_partition Int32,
    source_offset    Int64,
    event_time       DateTime64(6, 'UTC') CODEC(Delta, ZSTD),
    run_id           LowCardinality(String),
    incarnation      UInt32,
    step             UInt64,
    micro_batch      UInt32, -- from 0
    data             UInt32,
    tokens           UInt64, -- of all data, without padding
    loss_tokens      UInt64,
    padded_tokens    UInt64, -- data x the longest
    longest          UInt32,
    scale            Float64,
    slots            Array(UInt32), -- of the data, in order
    sample_indices   Array(UInt32),
    lengths          Array(UInt32)
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(event_time)
ORDER BY (run_id, incarnation, step, micro_batch, source_topic)
SETTINGS non_replicated_deduplication_window = 10000;
