-- Two replays of the run in hand.sql. Replay z pays 0 for a wrong answer without a box
-- and compares otherwise; it closed the groups again. Replay y stopped at scores.
--
--   replay copy  old        new                    family          advantage old, new
--   z      11    1 correct  1 correct              same            1.25   0.25
--   z      12    -1         1 correct              now_correct     -0.75  0.25
--   z      13    -1         0                      reward          -0.75  -0.5
--   z      14    ungraded   ungraded               same            0      0
--   z      19    1 correct  ungraded               now_ungraded    a duplicate: none
--   z      21    -1         0                      reward          0      0.5
--   z      22    -1 box     -1 no box              read_otherwise  0      -0.5
--   z      31    1 correct  -1                     now_wrong       0      0
--   z      99    not here   1 correct              no_original     none
--   y      11    1 correct  -1                     now_wrong       1.25   none
INSERT INTO replay_scores (replay_id, source_topic, source_offset, event_time, run_id, step, slot, sample_index, copy, question_id, mode, graded, reward, correct, valid_format, verdict) VALUES
('z', 'replay-z.scored', 0, '2026-11-01 12:00:10', 'r', 1, 0, 0, 11, 'qa', 'train', true,   1, true,  true,  ''),
('z', 'replay-z.scored', 1, '2026-11-01 12:00:11', 'r', 1, 0, 1, 12, 'qa', 'train', true,   1, true,  true,  'equal'),
('z', 'replay-z.scored', 2, '2026-11-01 12:00:05', 'r', 1, 0, 2, 13, 'qa', 'train', true,   0, false, false, 'undecided'),
('z', 'replay-z.scored', 3, '2026-11-01 12:00:06', 'r', 1, 0, 3, 14, 'qa', 'train', false,  0, false, false, ''),
('z', 'replay-z.scored', 4, '2026-11-01 12:00:12', 'r', 1, 0, 0, 19, 'qa', 'train', false,  0, false, false, ''),
('z', 'replay-z.scored', 5, '2026-11-01 12:00:07', 'r', 1, 1, 0, 21, 'qb', 'train', true,   0, false, false, ''),
('z', 'replay-z.scored', 6, '2026-11-01 12:00:07', 'r', 1, 1, 1, 22, 'qb', 'train', true,  -1, false, false, ''),
('z', 'replay-z.scored', 7, '2026-11-01 12:00:08', 'r', 1, 2, 0, 31, 'qc', 'train', true,  -1, false, true,  'different'),
('z', 'replay-z.scored', 8, '2026-11-01 12:00:08', 'r', 9, 0, 0, 99, 'qz', 'train', true,   1, true,  true,  'equal'),
('y', 'replay-y.scored', 0, '2026-11-01 12:00:10', 'r', 1, 0, 0, 11, 'qa', 'train', true,  -1, false, true,  'different');

INSERT INTO replay_groups (replay_id, source_topic, source_offset, event_time, run_id, step, slot, mode, closing, graded, closed_at) VALUES
('z', 'replay-z.grouped', 0, '2026-11-01 12:00:12', 'r', 1, 0, 'train', 'used',    3, '2026-11-01 12:00:12'),
('z', 'replay-z.grouped', 1, '2026-11-01 12:00:08', 'r', 1, 1, 'train', 'used',    2, '2026-11-01 12:00:08'),
('z', 'replay-z.grouped', 2, '2026-11-01 12:00:14', 'r', 1, 2, 'train', 'dropped', 1, '2026-11-01 12:00:14');

INSERT INTO replay_group_fates (replay_id, source_topic, source_offset, event_time, run_id, step, slot, sample_index, copy, mode, fate, reward, advantage) VALUES
('z', 'replay-z.grouped', 0, '2026-11-01 12:00:12', 'r', 1, 0, 0, 11, 'train', 'used',         1,  0.25),
('z', 'replay-z.grouped', 0, '2026-11-01 12:00:12', 'r', 1, 0, 1, 12, 'train', 'used',         1,  0.25),
('z', 'replay-z.grouped', 0, '2026-11-01 12:00:12', 'r', 1, 0, 2, 13, 'train', 'used',         0, -0.5),
('z', 'replay-z.grouped', 0, '2026-11-01 12:00:12', 'r', 1, 0, 3, 14, 'train', 'ungraded',     0,  0),
('z', 'replay-z.grouped', 1, '2026-11-01 12:00:08', 'r', 1, 1, 0, 21, 'train', 'used',         0,  0.5),
('z', 'replay-z.grouped', 1, '2026-11-01 12:00:08', 'r', 1, 1, 1, 22, 'train', 'used',        -1, -0.5),
('z', 'replay-z.grouped', 2, '2026-11-01 12:00:14', 'r', 1, 2, 0, 31, 'train', 'short_group', -1,  0),
('z', 'replay-z.grouped', 2, '2026-11-01 12:00:14', 'r', 1, 2, 1, 0,  'train', 'missing',      0,  0);

INSERT INTO replay_step_batches (replay_id, source_topic, source_offset, event_time, run_id, step, micro_batches, n, data, batched_at) VALUES
('z', 'replay-z.ppo-batches', 0, '2026-11-01 12:00:15', 'r', 1, 1, 5, 5, '2026-11-01 12:00:15');

INSERT INTO replay_batch_members (replay_id, source_topic, source_offset, event_time, run_id, step, slot, sample_index, copy, fate) VALUES
('z', 'replay-z.ppo-batches', 0, '2026-11-01 12:00:15', 'r', 1, 0, 0, 11, 'trained');
