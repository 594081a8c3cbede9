-- One small run, worked by hand; views_test.go holds the numbers that follow from it.
--
-- Step 1: slot 0 is used, slot 1 degenerate, slot 2 dropped. Step 2: nothing to train on.
-- Slot 0 of step 1 has sample indices 0 to 3 and besides a copy that came too late.
--
--   place  copy  graded reward correct box  turns calls execs toolturns first   end               fate
--   1/0/0  11    yes     1     yes     yes  3     2     2     2         error   answer            trained
--   1/0/1  12    yes    -1     no      yes  2     1     1     1         timeout answer            trained
--   1/0/2  13    yes    -1     no      no   1     0     0     1                 invalid_tool_call too_long
--   1/0/3  14    no                         1     0     0     0                 infra_error       ungraded
--   1/0/0  19    yes     1     yes     yes  2     1     1     1         ok      answer            duplicate
--   1/1/0  21    yes    -1     no      no   1     0     0     0                 answer            degenerate
--   1/1/1  22    yes    -1     no      yes  2     1     1     1         ok      answer            degenerate
--   1/2/0  31    yes     1     yes     yes  1     0     0     0                 answer            short_group
--   1/2/1        never arrived                                                                    missing
--   2/0/0  41    yes     1     yes     yes  1     0     0     0                 answer            degenerate
--   2/0/1  42    yes     1     yes     yes  1     0     0     0                 answer            pending (group still open)
INSERT INTO trajectories (source_topic, source_partition, source_offset, event_time, run_id, step, slot, sample_index, copy, mode, end_reason, turns, code_calls, executions, tool_call_turns, tool_turns, policy_tokens, trajectory_tokens, policy_version_min, policy_version_max, first_outcome, execution_outcomes, execution_wall_ms, graded, reward, correct, valid_format, fed_at, started_at, ended_at, scored_at) VALUES
('scored', 0, 0, '2026-11-01 12:00:10', 'r', 1, 0, 0, 11, 'train', 'answer',            3, 2, 2, 2, 2, 30, 100, 1, 1, 'error', ['error','ok'], [10,30],   true,   1, true,  true,  '2026-11-01 12:00:00', '2026-11-01 12:00:01', '2026-11-01 12:00:09', '2026-11-01 12:00:10'),
('scored', 0, 1, '2026-11-01 12:00:11', 'r', 1, 0, 1, 12, 'train', 'answer',            2, 1, 1, 1, 1, 20,  80, 1, 1, 'timeout', ['timeout'], [100], true,  -1, false, true,  '2026-11-01 12:00:00', '2026-11-01 12:00:01', '2026-11-01 12:00:10', '2026-11-01 12:00:11'),
('scored', 0, 2, '2026-11-01 12:00:05', 'r', 1, 0, 2, 13, 'train', 'invalid_tool_call', 1, 0, 0, 1, 0, 10,  60, 1, 1, '', [], [],        true,  -1, false, false, '2026-11-01 12:00:00', '2026-11-01 12:00:01', '2026-11-01 12:00:04', '2026-11-01 12:00:05'),
('scored', 0, 3, '2026-11-01 12:00:06', 'r', 1, 0, 3, 14, 'train', 'infra_error',       1, 0, 0, 0, 0, 10,  60, 1, 1, '', [], [],        false,  0, false, false, '2026-11-01 12:00:00', '2026-11-01 12:00:01', NULL,                  '2026-11-01 12:00:06'),
('scored', 0, 4, '2026-11-01 12:00:12', 'r', 1, 0, 0, 19, 'train', 'answer',            2, 1, 1, 1, 1, 20,  70, 1, 1, 'ok', ['ok'], [1000],      true,   1, true,  true,  '2026-11-01 12:00:00', '2026-11-01 12:00:01', '2026-11-01 12:00:10', '2026-11-01 12:00:12'),
('scored', 1, 0, '2026-11-01 12:00:07', 'r', 1, 1, 0, 21, 'train', 'answer',            1, 0, 0, 0, 0, 10,  50, 1, 1, '', [], [],        true,  -1, false, false, '2026-11-01 12:00:00', '2026-11-01 12:00:02', '2026-11-01 12:00:06', '2026-11-01 12:00:07'),
('scored', 1, 1, '2026-11-01 12:00:07', 'r', 1, 1, 1, 22, 'train', 'answer',            2, 1, 1, 1, 1, 20,  70, 1, 1, 'ok', ['ok'], [20],      true,  -1, false, true,  '2026-11-01 12:00:00', '2026-11-01 12:00:02', '2026-11-01 12:00:06', '2026-11-01 12:00:07'),
('scored', 2, 0, '2026-11-01 12:00:08', 'r', 1, 2, 0, 31, 'train', 'answer',            1, 0, 0, 0, 0, 10,  40, 1, 1, '', [], [],        true,   1, true,  true,  '2026-11-01 12:00:00', '2026-11-01 12:00:02', '2026-11-01 12:00:07', '2026-11-01 12:00:08'),
('scored', 3, 0, '2026-11-01 12:00:22', 'r', 2, 0, 0, 41, 'train', 'answer',            1, 0, 0, 0, 0, 10,  40, 2, 2, '', [], [],        true,   1, true,  true,  '2026-11-01 12:00:19', '2026-11-01 12:00:20', '2026-11-01 12:00:21', '2026-11-01 12:00:22'),
('scored', 3, 1, '2026-11-01 12:00:24', 'r', 2, 0, 1, 42, 'train', 'answer',            1, 0, 0, 0, 0, 10,  40, 2, 2, '', [], [],        true,   1, true,  true,  '2026-11-01 12:00:19', '2026-11-01 12:00:20', '2026-11-01 12:00:23', '2026-11-01 12:00:24');

-- Executions: 11 error 10 ms then ok 30 ms; 12 timeout 100 ms; 22 ok 20 ms; the
-- duplicate 19 ok 1000 ms, which counts nowhere but in tool_errors.
INSERT INTO turns (source_topic, source_partition, source_offset, event_time, run_id, step, slot, sample_index, copy, turn, mode, kind, graded, policy_version_min, policy_version_max, code, execution, outcome, exception, wall_ms, queue_wait_ms, unknown_runs, sample_started_at, sample_ended_at, tokens, glue_tokens) VALUES
('scored', 0, 0, '2026-11-01 12:00:10', 'r', 1, 0, 0, 11, 0, 'train', 'tool',   true, 1, 1, 'x',     1, 'error',   'NameError', 10,   5, 0, '2026-11-01 12:00:01', '2026-11-01 12:00:03', [1,2,3], [9,9]),
('scored', 0, 0, '2026-11-01 12:00:10', 'r', 1, 0, 0, 11, 1, 'train', 'tool',   true, 1, 1, 'xyz',   2, 'ok',      '',          30,   5, 0, '2026-11-01 12:00:04', '2026-11-01 12:00:05', [4], [9]),
('scored', 0, 0, '2026-11-01 12:00:10', 'r', 1, 0, 0, 11, 2, 'train', 'answer', true, 1, 1, '',      0, '',        '',          0,    0, 0, '2026-11-01 12:00:06', '2026-11-01 12:00:09', [5], []),
('scored', 0, 1, '2026-11-01 12:00:11', 'r', 1, 0, 1, 12, 0, 'train', 'tool',   true, 1, 1, 'x',     1, 'timeout', '',          100,  0, 2, NULL, NULL, [], []),
('scored', 1, 1, '2026-11-01 12:00:07', 'r', 1, 1, 1, 22, 0, 'train', 'tool',   true, 1, 1, 'xxx',   1, 'ok',      '',          20,   0, 0, NULL, NULL, [], []),
('scored', 0, 4, '2026-11-01 12:00:12', 'r', 1, 0, 0, 19, 0, 'train', 'tool',   true, 1, 1, 'xx',    1, 'ok',      '',          1000, 0, 1, NULL, NULL, [], []);

INSERT INTO group_members (source_topic, source_offset, event_time, run_id, step, slot, sample_index, copy, mode, graded, reward, taken_at) VALUES
('grouped', 0, '2026-11-01 12:00:11', 'r', 1, 0, 0, 11, 'train', true, 1, '2026-11-01 12:00:11'),
('grouped', 1, '2026-11-01 12:00:22', 'r', 2, 0, 0, 41, 'train', true, 1, '2026-11-01 12:00:22');

INSERT INTO groups (source_topic, source_offset, event_time, run_id, step, slot, mode, closing, graded, missing, closed_at) VALUES
('grouped', 2, '2026-11-01 12:00:12', 'r', 1, 0, 'train', 'used',       3, 0, '2026-11-01 12:00:12'),
('grouped', 3, '2026-11-01 12:00:08', 'r', 1, 1, 'train', 'degenerate', 2, 0, '2026-11-01 12:00:08'),
('grouped', 4, '2026-11-01 12:00:14', 'r', 1, 2, 'train', 'dropped',    1, 1, '2026-11-01 12:00:14');

INSERT INTO group_fates (source_topic, source_offset, event_time, run_id, step, slot, sample_index, copy, mode, fate, reward, advantage) VALUES
('grouped', 2, '2026-11-01 12:00:12', 'r', 1, 0, 0, 11, 'train', 'used',        1,  1.25),
('grouped', 2, '2026-11-01 12:00:12', 'r', 1, 0, 1, 12, 'train', 'used',       -1, -0.75),
('grouped', 2, '2026-11-01 12:00:12', 'r', 1, 0, 2, 13, 'train', 'used',       -1, -0.75),
('grouped', 2, '2026-11-01 12:00:12', 'r', 1, 0, 3, 14, 'train', 'ungraded',    0,  0),
('grouped', 3, '2026-11-01 12:00:08', 'r', 1, 1, 0, 21, 'train', 'degenerate', -1,  0),
('grouped', 3, '2026-11-01 12:00:08', 'r', 1, 1, 1, 22, 'train', 'degenerate', -1,  0),
('grouped', 4, '2026-11-01 12:00:14', 'r', 1, 2, 0, 31, 'train', 'short_group', 1,  0),
('grouped', 4, '2026-11-01 12:00:14', 'r', 1, 2, 1, 0,  'train', 'missing',     0,  0),
('grouped', 5, '2026-11-01 12:00:23', 'r', 2, 0, 0, 41, 'train', 'degenerate',  1,  0);

INSERT INTO step_batches (source_topic, source_offset, event_time, run_id, step, micro_batches, n, clip_low, clip_high, data, loss_tokens, padded_tokens, batched_at) VALUES
('ppo-batches', 0, '2026-11-01 12:00:15', 'r', 1, 1, 5, 0.8, 1.28, 2, 50, 200, '2026-11-01 12:00:15'),
('ppo-batches', 2, '2026-11-01 12:00:25', 'r', 2, 0, 0, 0.8, 1.28, 0, 0,  0,   '2026-11-01 12:00:25');

INSERT INTO batch_members (source_topic, source_offset, event_time, run_id, step, slot, sample_index, copy, fate, detail, loss_tokens) VALUES
('ppo-batches', 0, '2026-11-01 12:00:15', 'r', 1, 0, 0, 11, 'trained',  '', 30),
('ppo-batches', 0, '2026-11-01 12:00:15', 'r', 1, 0, 1, 12, 'trained',  '', 20),
('ppo-batches', 0, '2026-11-01 12:00:15', 'r', 1, 0, 2, 13, 'too_long', '9000 tokens', 0);

INSERT INTO micro_batches (source_topic, source_offset, event_time, run_id, step, micro_batch, data, padded_tokens) VALUES
('ppo-batches', 1, '2026-11-01 12:00:15', 'r', 1, 0, 2, 200);

INSERT INTO policy_updates (source_topic, source_offset, event_time, run_id, step, policy_version, trained, published_at) VALUES
('policy-updates', 0, '2026-11-01 12:00:18', 'r', 1, 2, true, '2026-11-01 12:00:18');

INSERT INTO dead_letters (source_topic, source_offset, event_time, stage, failed_topic, failed_offset, error_type, run_id) VALUES
('dead-letters', 0, '2026-11-01 12:00:03', 'sampler', 'prompts', 7, 'undecodable', 'r'),
('dead-letters', 1, '2026-11-01 12:00:03', 'sampler', 'prompts', 8, 'undecodable', '');

-- Annotated: 11 twice (the later row counts) and 12; with d = ln 2, 0 and d = ln 0.5.
INSERT INTO trainer_annotations (source_topic, source_partition, source_offset, event_time, run_id, step, slot, sample_index, copy, policy_version, logprobs, behaviour_logprobs, entropy) VALUES
('trainer-annotations', 0, 0, '2026-11-01 12:00:16', 'r', 1, 0, 0, 11, 1, [-9, -9], [-1, -0.5], [0.5, 1.5]),
('trainer-annotations', 0, 1, '2026-11-01 12:00:17', 'r', 1, 0, 0, 11, 1, [-0.30685282, -0.5], [-1, -0.5], [0.5, 1.5]),
('trainer-annotations', 0, 2, '2026-11-01 12:00:17', 'r', 1, 0, 1, 12, 1, [-1.6931472], [-1], []);
