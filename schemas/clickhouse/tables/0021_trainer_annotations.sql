-- One row per datum of a step, where the trainer says what it computed of each token.
--
-- Written from topic trainer-annotations. event_time is annotated_at. The three arrays
-- have one value for each token that the policy sampled, in order; entropy may be empty.
CREATE TABLE IF NOT EXISTS trainer_annotations
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
    policy_version   UInt32, -- of the weights that the logprobs are of: before the update
    logprobs         Array(Float32) CODEC(ZSTD), -- the trainer's
    behaviour_logprobs Array(Float32) CODEC(ZSTD), -- the sampler's
    entropy          Array(Float32) CODEC(ZSTD), -- nats
    annotated_at     Nullable(DateTime64(6, 'UTC'))
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(event_time)
ORDER BY (run_id, incarnation, step, slot, sample_index, copy, source_topic, source_partition, source_offset)
SETTINGS non_replicated_deduplication_window = 10000;

--   step_batches.digest      what names the batch, in hex; '' before there were digests
--   step_batches.correction  how sampler and trainer are corrected for; '': not at all
ALTER TABLE step_batches
    ADD COLUMN IF NOT EXISTS digest String AFTER infra_errors,
    ADD COLUMN IF NOT EXISTS correction LowCardinality(String) AFTER digest;

ALTER TABLE replay_step_batches
    ADD COLUMN IF NOT EXISTS digest String AFTER infra_errors,
    ADD COLUMN IF NOT EXISTS correction LowCardinality(String) AFTER digest;
