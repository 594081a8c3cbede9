-- One row per turn of a scored trajectory, with the execution that followed it, if
-- one did: outcome is '' where none did.
--
-- Written from topic scored. event_time is the trajectory's scored_at.
CREATE TABLE IF NOT EXISTS turns
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
    turn             UInt32, -- from 0
    kind             LowCardinality(String), -- tool, answer, invalid
    invalid_reason   LowCardinality(String),
    truncated        Bool,
    has_tool_call    Bool, -- the text contains <tool_call>
    aborts           UInt32,
    policy_version_min UInt32,
    policy_version_max UInt32,
    -- Of the trajectory, so that questions about turns need no join.
    mode             LowCardinality(String),
    graded           Bool,
    correct          Bool,
    text             String CODEC(ZSTD(3)),
    code             String CODEC(ZSTD(3)),
    observation      String CODEC(ZSTD(3)),
    tokens           Array(UInt32)  CODEC(ZSTD(3)), -- sampled by the policy, loss mask 1
    logprobs         Array(Float32) CODEC(ZSTD(3)), -- one for each of tokens
    glue_tokens      Array(UInt32)  CODEC(ZSTD(3)), -- after them, loss mask 0
    sample_started_at Nullable(DateTime64(6, 'UTC')),
    sample_ended_at  Nullable(DateTime64(6, 'UTC')),
    -- The execution.
    execution        UInt32, -- 1 for the trajectory's first run, 2 for the second …; 0 if none
    call_id          String,
    outcome          LowCardinality(String), -- ok, error, timeout, out_of_memory, output_limit, killed
    exit_code        Int32,
    exception        LowCardinality(String), -- class of the Python exception
    stdout           String CODEC(ZSTD(3)),
    stderr           String CODEC(ZSTD(3)),
    stdout_truncated Bool,
    stderr_truncated Bool,
    stdout_bytes     UInt64,
    stderr_bytes     UInt64,
    timeout_ms       UInt32,
    wall_ms          Float64,
    cpu_ms           Float64,
    queue_wait_ms    Float64, -- waited for a sandbox; no part of wall_ms
    peak_memory_bytes UInt64,
    warm             Bool,
    image            LowCardinality(String),
    sandbox_id       String,
    protections      Array(LowCardinality(String)),
    queued_at        Nullable(DateTime64(6, 'UTC')),
    execution_started_at Nullable(DateTime64(6, 'UTC')),
    execution_ended_at Nullable(DateTime64(6, 'UTC')),
    delivery         UInt32
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(event_time)
ORDER BY (run_id, incarnation, step, slot, sample_index, copy, turn, source_topic)
SETTINGS non_replicated_deduplication_window = 10000;
