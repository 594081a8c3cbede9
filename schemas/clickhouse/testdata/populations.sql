-- Rows that belong into some figures and not into others, worked by hand; TestPopulations
-- holds what follows. Step 1 was rolled back: incarnation 1 made it again.
--
--   inc place  copy mode  graded correct version end   what it is
--   0   1/0/0  1    train yes    no      3       :05   trained
--   0   1/0/0  4    train no             3       :06   work done again at a place that is held: lost, and in nobody's way
--   0   1/0/1  2    train no             3       :04   lost; refilled by
--   0   1/0/1  3    train yes    no      3       :08   trained
--   0   1/0/2  5    train yes    yes     3       12:30 late: its place was closed without anybody
--   1   1/0/0  11   train yes    yes     3       1:05  trained, by the other version 3
--   0   2/0/0  31   train no             -             its prompt was too long: no policy token
--   0   1/7/0  21   eval  yes    yes     3       :05   evaluated
INSERT INTO trajectories (source_topic, source_offset, event_time, run_id, incarnation, step, slot, sample_index, copy, attempt, mode, end_reason, turns, code_calls, executions, tool_call_turns, tool_turns, policy_tokens, trajectory_tokens, policy_version_min, policy_version_max, first_outcome, execution_outcomes, execution_wall_ms, graded, reward, correct, valid_format, fed_at, started_at, ended_at, scored_at) VALUES
('scored', 0, '2026-11-01 12:00:06', 'p', 0, 1, 0, 0, 1,  0, 'train', 'answer',          3, 2, 2, 3, 3, 10, 20, 3, 3, 'error', ['error','error'], [1,2], true, -1, false, true,  '2026-11-01 12:00:00', '2026-11-01 12:00:01', '2026-11-01 12:00:05', '2026-11-01 12:00:06'),
('scored', 1, '2026-11-01 12:00:07', 'p', 0, 1, 0, 0, 4,  0, 'train', 'infra_error',     1, 0, 0, 0, 0, 10, 20, 3, 3, '',      [],                [],    false, 0, false, false, '2026-11-01 12:00:00', '2026-11-01 12:00:01', '2026-11-01 12:00:06', '2026-11-01 12:00:07'),
('scored', 2, '2026-11-01 12:00:05', 'p', 0, 1, 0, 1, 2,  0, 'train', 'infra_error',     1, 0, 0, 0, 0, 10, 20, 3, 3, '',      [],                [],    false, 0, false, false, '2026-11-01 12:00:00', '2026-11-01 12:00:01', '2026-11-01 12:00:04', '2026-11-01 12:00:05'),
('scored', 3, '2026-11-01 12:00:09', 'p', 0, 1, 0, 1, 3,  1, 'train', 'answer',          3, 2, 2, 2, 2, 10, 20, 3, 3, 'error', ['error','ok'],    [3,4], true, -1, false, true,  '2026-11-01 12:00:00', '2026-11-01 12:00:05', '2026-11-01 12:00:08', '2026-11-01 12:00:09'),
('scored', 4, '2026-11-01 12:12:31', 'p', 0, 1, 0, 2, 5,  0, 'train', 'answer',          2, 1, 1, 1, 1, 10, 20, 3, 3, 'error', ['error'],         [900], true,  1, true,  true,  '2026-11-01 12:00:00', '2026-11-01 12:00:01', '2026-11-01 12:12:30', '2026-11-01 12:12:31'),
('scored', 5, '2026-11-01 12:01:06', 'p', 1, 1, 0, 0, 11, 0, 'train', 'answer',          1, 0, 0, 0, 0, 10, 20, 3, 3, '',      [],                [],    true,  1, true,  true,  '2026-11-01 12:01:00', '2026-11-01 12:01:01', '2026-11-01 12:01:05', '2026-11-01 12:01:06'),
('scored', 6, '2026-11-01 12:00:31', 'p', 0, 2, 0, 0, 31, 0, 'train', 'prompt_too_long', 0, 0, 0, 0, 0, 0,  20, 0, 0, '',      [],                [],    false, 0, false, false, '2026-11-01 12:00:30', NULL,                  '2026-11-01 12:00:30', '2026-11-01 12:00:31'),
('scored', 7, '2026-11-01 12:00:06', 'p', 0, 1, 7, 0, 21, 0, 'eval',  'answer',          1, 0, 0, 0, 0, 10, 20, 3, 3, '',      [],                [],    true,  1, true,  true,  '2026-11-01 12:00:00', '2026-11-01 12:00:01', '2026-11-01 12:00:05', '2026-11-01 12:00:06');

INSERT INTO turns (source_topic, source_offset, event_time, run_id, incarnation, step, slot, sample_index, copy, turn, mode, kind, graded, policy_version_min, policy_version_max, code, execution, outcome, exception, wall_ms) VALUES
('scored', 0, '2026-11-01 12:00:06', 'p', 0, 1, 0, 0, 1,  0, 'train', 'tool', true, 3, 3, 'xx', 1, 'error', 'NameError', 1),
('scored', 5, '2026-11-01 12:01:06', 'p', 1, 1, 0, 0, 11, 0, 'train', 'tool', true, 3, 3, 'x',  1, 'ok',    '',          1),
('scored', 7, '2026-11-01 12:00:06', 'p', 0, 1, 7, 0, 21, 0, 'eval',  'tool', true, 3, 3, 'x',  1, 'error', 'TypeError', 1);

INSERT INTO group_members (source_topic, source_offset, event_time, run_id, incarnation, step, slot, sample_index, copy, mode, graded, reward, taken_at) VALUES
('grouped', 0, '2026-11-01 12:00:06', 'p', 0, 1, 0, 0, 1,  'train', true, -1, '2026-11-01 12:00:06'),
('grouped', 1, '2026-11-01 12:00:05', 'p', 0, 1, 0, 1, 2,  'train', false, 0, '2026-11-01 12:00:05'),
('grouped', 2, '2026-11-01 12:00:09', 'p', 0, 1, 0, 1, 3,  'train', true, -1, '2026-11-01 12:00:09'),
('grouped', 3, '2026-11-01 12:01:06', 'p', 1, 1, 0, 0, 11, 'train', true,  1, '2026-11-01 12:01:06');

INSERT INTO groups (source_topic, source_offset, event_time, run_id, incarnation, step, slot, mode, closing, graded, missing, closed_at) VALUES
('grouped', 4, '2026-11-01 12:00:10', 'p', 0, 1, 0, 'train', 'used', 2, 1, '2026-11-01 12:00:10'),
('grouped', 5, '2026-11-01 12:01:07', 'p', 1, 1, 0, 'train', 'used', 1, 0, '2026-11-01 12:01:07');

INSERT INTO group_fates (source_topic, source_offset, event_time, run_id, incarnation, step, slot, sample_index, copy, mode, fate, reward, advantage) VALUES
('grouped', 4, '2026-11-01 12:00:10', 'p', 0, 1, 0, 0, 1,  'train', 'used',    -1, 0),
('grouped', 4, '2026-11-01 12:00:10', 'p', 0, 1, 0, 1, 3,  'train', 'used',    -1, 0),
('grouped', 4, '2026-11-01 12:00:10', 'p', 0, 1, 0, 2, 0,  'train', 'missing',  0, 0),
('grouped', 5, '2026-11-01 12:01:07', 'p', 1, 1, 0, 0, 11, 'train', 'used',     1, 0),
('grouped', 6, '2026-11-01 12:00:07', 'p', 0, 1, 7, 0, 21, 'eval',  'used',     1, 0);

INSERT INTO step_batches (source_topic, source_offset, event_time, run_id, incarnation, step, micro_batches, n, data, loss_tokens, padded_tokens, batched_at) VALUES
('ppo-batches', 0, '2026-11-01 12:00:11', 'p', 0, 1, 1, 2, 2, 20, 40, '2026-11-01 12:00:11'),
('ppo-batches', 1, '2026-11-01 12:01:08', 'p', 1, 1, 1, 1, 1, 10, 20, '2026-11-01 12:01:08');

INSERT INTO batch_members (source_topic, source_offset, event_time, run_id, incarnation, step, slot, sample_index, copy, fate, loss_tokens) VALUES
('ppo-batches', 0, '2026-11-01 12:00:11', 'p', 0, 1, 0, 0, 1,  'trained', 10),
('ppo-batches', 0, '2026-11-01 12:00:11', 'p', 0, 1, 0, 1, 3,  'trained', 10),
('ppo-batches', 1, '2026-11-01 12:01:08', 'p', 1, 1, 0, 0, 11, 'trained', 10);
