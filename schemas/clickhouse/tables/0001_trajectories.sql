-- One row per scored trajectory: how it ended and what the reward says of it. Also of
-- copies that were dropped later: view trajectory_fates says which ones.
--
-- Written from topic scored. event_time is scored_at. The sorting key is the identity
-- of a trajectory, so that a row written twice is one row with FINAL; the topic stands
-- in it so that a replay into another topic never replaces the original.
CREATE TABLE IF NOT EXISTS trajectories
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
    data_source      LowCardinality(String),
    mode             LowCardinality(String), -- train, eval
    question         String CODEC(ZSTD(3)),
    reference_answer String,
    group_size       UInt32,
    groups_in_step   UInt32,
    tool_enabled     Bool,
    epoch            UInt32,
    temperature      Float64,
    top_p            Float64,
    -- How it ended.
    end_reason       LowCardinality(String),
    end_detail       String,
    ended_by         LowCardinality(String),
    final_text       String CODEC(ZSTD(3)),
    -- Counts over the whole trajectory.
    turns            UInt32,
    code_calls       UInt32, -- whose observation was appended
    executions       UInt32, -- programs run, whether their observation fitted or not
    tool_call_turns  UInt32, -- turns whose text contains <tool_call>
    truncated_turns  UInt32,
    aborts           UInt32,
    prompt_tokens    Array(UInt32) CODEC(ZSTD(3)),
    policy_tokens    UInt32, -- sampled by the policy, loss mask 1
    glue_tokens      UInt32, -- observations and glue, loss mask 0
    trajectory_tokens UInt32, -- prompt, policy and glue
    policy_version_min UInt32,
    policy_version_max UInt32,
    first_outcome    LowCardinality(String), -- of the first execution, '' if none
    -- The reward.
    graded           Bool,
    ungraded_reason  String,
    reward           Float64, -- 0 where graded is false: never average it then
    correct          Bool,
    valid_format     Bool,    -- the final text holds a readable box
    answer           String,
    verdict          LowCardinality(String), -- equal, different, undecided
    verdict_method   LowCardinality(String),
    verdict_reason   String,
    gold_read        String,
    pred_read        String,
    scorer           LowCardinality(String), -- the one that decides the advantage
    scorer_version   LowCardinality(String),
    score_names      Array(LowCardinality(String)), -- all of them, in order
    score_versions   Array(LowCardinality(String)),
    score_rewards    Array(Float64),
    score_errors     Array(String),
    fed_at           Nullable(DateTime64(6, 'UTC')),
    started_at       Nullable(DateTime64(6, 'UTC')),
    ended_at         Nullable(DateTime64(6, 'UTC')),
    scored_at        Nullable(DateTime64(6, 'UTC'))
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(event_time)
ORDER BY (run_id, incarnation, step, slot, sample_index, copy, source_topic)
SETTINGS non_replicated_deduplication_window = 10000;
