-- Run hand: two steps of two groups of two.
--
--   step slot copies      question  outcome
--   1    0    101 102     q1        102 right after a NameError that it mended; 101 wrong
--   1    1    111 112     q2        both wrong; 112 by a time-out: degenerate
--   2    0    201 202     q1        both right: degenerate; 201 is what Scored in uitest.go holds
--   2    1    211 212     q2        211 right, 212 ungraded; 219 is a second copy of 211's place
--   2    7    291         q3        mode eval: right
--
-- Times: each step takes ten seconds; the fields that no test names are left out.
INSERT INTO trajectories (run_id, step, slot, sample_index, copy, mode, question_id, question, reference_answer, group_size, groups_in_step, tool_enabled, temperature, top_p, end_reason, final_text, turns, code_calls, executions, tool_turns, tool_call_turns, execution_outcomes, execution_wall_ms, first_outcome, policy_tokens, glue_tokens, trajectory_tokens, policy_version_min, policy_version_max, graded, ungraded_reason, reward, correct, valid_format, answer, verdict, verdict_method, verdict_reason, gold_read, pred_read, scorer, scorer_version, score_names, score_versions, score_rewards, score_errors, fed_at, started_at, ended_at, scored_at, event_time, source_topic, source_partition, source_offset)
SELECT 'hand', step, slot, sample, copy, mode, question, concat('What is question ', question, '?'), '7', 2, 2, 1, 1, 1, end, concat('The answer of ', toString(copy), ' is \\boxed{7}'), length(outs) + 1, length(outs), length(outs), length(outs), length(outs), outs, arrayMap(o -> 20., outs), if(empty(outs), '', outs[1]), 4, 1, 7, step - 1, step - 1, graded, if(graded, '', 'infra_error'), reward, reward > 0, graded, if(reward > 0, '7', '8'), if(reward > 0, 'equal', 'different'), 'number', 'the same number', '7', if(reward > 0, '7', '8'), 'outcome', '1', ['outcome', 'brief'], ['1', 'a2'], [reward, reward / 2], ['', ''],
    toDateTime64('2026-05-01 12:00:00', 6, 'UTC') + step * 10, toDateTime64('2026-05-01 12:00:01', 6, 'UTC') + step * 10, toDateTime64('2026-05-01 12:00:05', 6, 'UTC') + step * 10, toDateTime64('2026-05-01 12:00:06', 6, 'UTC') + step * 10, toDateTime64('2026-05-01 12:00:06', 6, 'UTC') + step * 10, 'scored', 0, 0
FROM values('step UInt64, slot UInt32, sample UInt32, copy UInt64, mode String, question String, end String, outs Array(String), graded Bool, reward Float64',
    (1, 0, 0, 101, 'train', 'q1', 'answer', [], 1, -1), (1, 0, 1, 102, 'train', 'q1', 'answer', ['error', 'ok'], 1, 1),
    (1, 1, 0, 111, 'train', 'q2', 'answer', [], 1, -1), (1, 1, 1, 112, 'train', 'q2', 'turn_budget', ['timeout'], 1, -1),
    (2, 0, 0, 201, 'train', 'q1', 'answer', ['ok'], 1, 1), (2, 0, 1, 202, 'train', 'q1', 'answer', ['ok'], 1, 1),
    (2, 1, 0, 211, 'train', 'q2', 'answer', ['ok'], 1, 1), (2, 1, 0, 219, 'train', 'q2', 'answer', [], 1, -1), (2, 1, 1, 212, 'train', 'q2', 'infra_error', [], 0, 0),
    (2, 7, 0, 291, 'eval', 'q3', 'answer', [], 1, 1));

INSERT INTO turns (run_id, step, slot, sample_index, copy, turn, kind, mode, graded, correct, text, code, observation, tokens, logprobs, glue_tokens, policy_version_min, policy_version_max, outcome, exit_code, exception, stdout, stderr, wall_ms, queue_wait_ms, sample_started_at, sample_ended_at, queued_at, execution_started_at, execution_ended_at, event_time)
SELECT 'hand', step, slot, sample, copy, turn, if(out = '', 'answer', 'tool'), 'train', 1, 1, if(out = '', '\\boxed{7}', concat('Let me compute.\n<tool_call>\n', code, '\n</tool_call>')), code, if(out = 'ok', '7\n', err), if(turn = 0, [11, 12, 13], [14]), if(turn = 0, [-0.01, -1, -4], [-0.5]), if(turn = 0, [21], []), step - 1, step - 1, out, if(out = 'ok', 0, 1), exception, if(out = 'ok', '7\n', ''), err, 20, 5,
    toDateTime64('2026-05-01 12:00:01', 6, 'UTC') + step * 10 + turn, toDateTime64('2026-05-01 12:00:01.5', 6, 'UTC') + step * 10 + turn, toDateTime64('2026-05-01 12:00:01.5', 6, 'UTC') + step * 10 + turn, toDateTime64('2026-05-01 12:00:01.6', 6, 'UTC') + step * 10 + turn, toDateTime64('2026-05-01 12:00:01.7', 6, 'UTC') + step * 10 + turn, toDateTime64('2026-05-01 12:00:06', 6, 'UTC') + step * 10
FROM values('step UInt64, slot UInt32, sample UInt32, copy UInt64, turn UInt32, out String, code String, exception String, err String',
    (1, 0, 0, 101, 0, '', '', '', ''),
    (1, 0, 1, 102, 0, 'error', 'print(x1)', 'NameError', 'Traceback (most recent call last):\n  File "<string>", line 1\nNameError: name \'x1\' is not defined\n'), (1, 0, 1, 102, 1, 'ok', 'print(7)', '', ''), (1, 0, 1, 102, 2, '', '', '', ''),
    (1, 1, 0, 111, 0, '', '', '', ''), (1, 1, 1, 112, 0, 'timeout', 'while True: pass', '', ''),
    (2, 0, 0, 201, 0, 'ok', 'print(7)', '', ''), (2, 0, 0, 201, 1, '', '', '', ''), (2, 0, 1, 202, 0, 'ok', 'print(7)', '', ''), (2, 0, 1, 202, 1, '', '', '', ''),
    (2, 1, 0, 211, 0, 'error', 'print(y22)', 'NameError', 'NameError: name \'y22\' is not defined\n'), (2, 1, 0, 211, 1, '', '', '', ''), (2, 1, 0, 219, 0, '', '', '', ''));

INSERT INTO groups (run_id, step, slot, question_id, mode, group_size, groups_in_step, closing, reason, graded, missing, reward_mean, opened_at, closed_at, event_time)
SELECT 'hand', step, slot, question, mode, 2, 2, closing, 'complete', graded, 0, mean, toDateTime64('2026-05-01 12:00:01', 6, 'UTC') + step * 10, toDateTime64('2026-05-01 12:00:07', 6, 'UTC') + step * 10, toDateTime64('2026-05-01 12:00:07', 6, 'UTC') + step * 10
FROM values('step UInt64, slot UInt32, question String, mode String, closing String, graded UInt32, mean Float64',
    (1, 0, 'q1', 'train', 'used', 2, 0), (1, 1, 'q2', 'train', 'degenerate', 2, -1), (2, 0, 'q1', 'train', 'degenerate', 2, 1), (2, 1, 'q2', 'train', 'used', 1, 1), (2, 7, 'q3', 'eval', 'used', 1, 1));

INSERT INTO group_fates (run_id, step, slot, sample_index, copy, mode, fate, reward, advantage, event_time)
SELECT 'hand', step, slot, sample, copy, 'train', fate, reward, advantage, toDateTime64('2026-05-01 12:00:07', 6, 'UTC') + step * 10
FROM values('step UInt64, slot UInt32, sample UInt32, copy UInt64, fate String, reward Float64, advantage Float64',
    (1, 0, 0, 101, 'used', -1, -1), (1, 0, 1, 102, 'used', 1, 1), (1, 1, 0, 111, 'degenerate', -1, 0), (1, 1, 1, 112, 'degenerate', -1, 0),
    (2, 0, 0, 201, 'degenerate', 1, 0), (2, 0, 1, 202, 'degenerate', 1, 0), (2, 1, 0, 211, 'used', 1, 0.5), (2, 1, 1, 212, 'ungraded', 0, 0));

INSERT INTO step_batches (run_id, step, micro_batches, n, groups_used, groups_degenerate, data, loss_tokens, padded_tokens, batched_at, event_time)
SELECT 'hand', step, 1, 4, 1, 1, 2, 8, 14, at, at FROM (SELECT arrayJoin([1, 2]) AS step, toDateTime64('2026-05-01 12:00:08', 6, 'UTC') + step * 10 AS at);

INSERT INTO policy_updates (run_id, step, policy_version, trained, published_at, event_time)
SELECT 'hand', step, step, 1, at, at FROM (SELECT arrayJoin([1, 2]) AS step, toDateTime64('2026-05-01 12:00:09', 6, 'UTC') + step * 10 AS at);

INSERT INTO trainer_reports (run_id, step, policy_version, loss, ratio_mean, ratio_max, entropy, gradient_norm, event_time)
SELECT 'hand', step, step, 0.5, 1, 1.1, 0.3 / step, 0.2, at FROM (SELECT arrayJoin([1, 2]) AS step, toDateTime64('2026-05-01 12:00:09', 6, 'UTC') + step * 10 AS at);

INSERT INTO trainer_annotations (run_id, step, slot, sample_index, copy, policy_version, logprobs, behaviour_logprobs, entropy, event_time)
SELECT 'hand', 2, 0, 0, 201, 1, [-0.02, -1, -4.5, -0.25], [-0.01, -1, -4, -0.5], [0.5, 1, 2, 0.25], toDateTime64('2026-05-01 12:00:28', 6, 'UTC');

INSERT INTO dead_letters (stage, failed_topic, failed_partition, failed_offset, error_type, error, delivery_count, value, run_id, step, failed_at, event_time, source_partition, source_offset)
SELECT 'sampler', 'prompts', 1, 5, 'newer_schema', 'schema 9 is newer than 1', 3, 'abc', run, 2, toDateTime64('2026-05-01 12:00:09', 6, 'UTC'), toDateTime64('2026-05-01 12:00:09', 6, 'UTC'), 0, n
FROM values('run String, n Int64', ('hand', 1)) UNION ALL
SELECT 'reward-scorer', 'trajectories', 0, 6, 'undecodable', 'not a record', 1, 'xyz', '', 0, toDateTime64('2026-05-01 12:00:08', 6, 'UTC'), toDateTime64('2026-05-01 12:00:08', 6, 'UTC'), 0, 2;

INSERT INTO replay_scores (replay_id, run_id, step, slot, sample_index, copy, question_id, mode, graded, reward, correct, answer, verdict, event_time)
SELECT 'strict', 'hand', 2, 0, sample, 201 + sample, 'q1', 'train', 1, if(sample = 0, 1, -1), sample = 0, if(sample = 0, '7', '8'), if(sample = 0, 'equal', 'different'), toDateTime64('2026-05-01 12:00:26', 6, 'UTC') FROM (SELECT arrayJoin([0, 1]) AS sample);
