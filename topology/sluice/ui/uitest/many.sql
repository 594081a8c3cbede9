-- Many rows for measuring: 5 runs of {steps:UInt32} steps with 100 groups of 8, so 4000
-- trajectories for each step. Texts vary, so that they do not vanish in compression.
INSERT INTO trajectories (run_id, step, slot, sample_index, copy, mode, question_id, question, reference_answer, group_size, groups_in_step, tool_enabled, temperature, top_p, end_reason, final_text, turns, code_calls, executions, tool_turns, tool_call_turns, execution_outcomes, execution_wall_ms, first_outcome, prompt_tokens, policy_tokens, glue_tokens, trajectory_tokens, policy_version_min, policy_version_max, graded, reward, correct, valid_format, answer, verdict, verdict_method, scorer, scorer_version, score_names, score_versions, score_rewards, score_errors, fed_at, started_at, ended_at, scored_at, event_time, source_topic, source_partition, source_offset)
WITH toUInt64(number) AS n, n % 8 AS s, intDiv(n, 8) % 100 AS g, intDiv(n, 800) % {steps:UInt32} AS st, intDiv(n, 800 * {steps:UInt32}) AS r, cityHash64(n) AS h, h % 4 AS calls, toDateTime64('2026-05-01 00:00:00', 6, 'UTC') + toIntervalSecond(st * 20) AS t
SELECT concat('many-', toString(r)), st + 1, g, s, h, if(h % 50 = 0, 'eval', 'train'), toString((g + st * 100) % 5000), concat('Question ', toString((g + st * 100) % 5000), ': ', hex(sipHash128(g + st * 100)), ' and how many are there?'), '7', 8, 100, 1, 1, 1,
    ['answer', 'answer', 'answer', 'answer', 'answer', 'turn_budget', 'invalid_tool_call', 'infra_error'][1 + h % 8], concat('Thus ', hex(sipHash128(n)), ' the answer is \\boxed{', toString(h % 10), '}'), calls + 1, calls, calls, calls, calls,
    arrayMap(i -> if(bitAnd(bitShiftRight(h, i + 8), 3) = 0, 'error', 'ok'), range(calls)), arrayMap(i -> toFloat32(20 + i), range(calls)), if(calls = 0, '', if(bitAnd(bitShiftRight(h, 8), 3) = 0, 'error', 'ok')), arrayMap(i -> toUInt32(i * 7 + g), range(300)), 200 * (calls + 1), 60 * calls, 300 + 260 * calls, intDiv(st, 1), intDiv(st, 1),
    h % 8 != 7, if(h % 8 = 7, 0, if(h % 3 = 0, 1, -1)), h % 8 != 7 AND h % 3 = 0, 1, toString(h % 10), if(h % 3 = 0, 'equal', 'different'), 'number', 'outcome', '1', ['outcome'], ['1'], [if(h % 3 = 0, 1, -1)], [''],
    t, t + toIntervalMillisecond(100 + h % 500), t + toIntervalMillisecond(5000 + h % 9000), t + toIntervalMillisecond(14500), t + toIntervalMillisecond(14500), 'scored', h % 8, n
FROM numbers(5 * 800 * toUInt64({steps:UInt32}));

INSERT INTO turns (run_id, step, slot, sample_index, copy, turn, kind, mode, graded, correct, text, code, observation, tokens, logprobs, glue_tokens, policy_version_min, policy_version_max, outcome, exit_code, exception, stdout, stderr, wall_ms, queue_wait_ms, sample_started_at, sample_ended_at, event_time, source_topic)
WITH cityHash64(copy, turn_number) AS h, turn_number < code_calls AS calls, if(calls, execution_outcomes[turn_number + 1], '') AS out
SELECT run_id, step, slot, sample_index, copy, turn_number, if(calls, 'tool', 'answer'), mode, graded, correct,
    concat('Let me think of ', hex(sipHash128(h)), hex(sipHash128(h + 1)), ' first.\n', if(calls, concat('<tool_call>\nx = ', toString(h % 1000), '\nprint(x)\n</tool_call>'), final_text)), if(calls, concat('x = ', toString(h % 1000), '\nprint(x)'), ''), if(calls, toString(h % 1000), ''),
    arrayMap(i -> toUInt32(i * 31 + h % 1000), range(200)), arrayMap(i -> toFloat32(-((i * h) % 97) / 50), range(200)), if(calls, arrayMap(i -> toUInt32(i), range(60)), []), policy_version_min, policy_version_max,
    out, out = 'error', if(out = 'error', ['NameError', 'ValueError', 'ZeroDivisionError'][1 + h % 3], ''), if(out = 'ok', toString(h % 1000), ''), if(out = 'error', concat('Traceback (most recent call last):\n  File "<string>", line 2\n', ['NameError: name \'x', 'ValueError: bad \'', 'ZeroDivisionError: division \''][1 + h % 3], toString(h % 1000), '\''), ''), 20, 3, started_at, started_at + toIntervalSecond(2), event_time, source_topic
FROM trajectories ARRAY JOIN range(turns) AS turn_number;

INSERT INTO groups (run_id, step, slot, question_id, mode, group_size, groups_in_step, closing, reason, graded, reward_mean, opened_at, closed_at, event_time, source_topic)
SELECT run_id, step, slot, any(question_id), 'train', 8, 100, if(countIf(reward > 0) IN (0, countIf(graded)), 'degenerate', 'used'), 'complete', countIf(graded), avgIf(reward, graded), min(fed_at), max(scored_at), max(event_time), 'grouped' FROM trajectories WHERE mode = 'train' GROUP BY run_id, step, slot;

INSERT INTO group_fates (run_id, step, slot, sample_index, copy, mode, fate, reward, advantage, event_time, source_topic)
SELECT run_id, step, slot, sample_index, copy, mode, if(graded, 'used', 'ungraded'), reward, reward / 2, event_time, 'grouped' FROM trajectories WHERE mode = 'train';

INSERT INTO group_members (run_id, step, slot, sample_index, copy, question_id, mode, graded, reward, taken_at, event_time, source_topic)
SELECT run_id, step, slot, sample_index, copy, question_id, mode, graded, reward, scored_at, event_time, 'grouped' FROM trajectories;

INSERT INTO batch_members (run_id, step, slot, sample_index, copy, fate, loss_tokens, event_time, source_topic)
SELECT run_id, step, slot, sample_index, copy, 'trained', policy_tokens, event_time, 'ppo-batches' FROM trajectories WHERE mode = 'train' AND graded;

INSERT INTO step_batches (run_id, step, micro_batches, n, data, loss_tokens, padded_tokens, batched_at, event_time, source_topic)
SELECT run_id, step, 4, countIf(graded), countIf(graded), sum(policy_tokens), sum(policy_tokens), max(scored_at) + toIntervalMillisecond(100), max(event_time), 'ppo-batches' FROM trajectories WHERE mode = 'train' GROUP BY run_id, step;

INSERT INTO policy_updates (run_id, step, policy_version, trained, published_at, event_time, source_topic)
SELECT run_id, step, step, 1, batched_at + toIntervalSecond(3), event_time, 'policy-updates' FROM step_batches;

INSERT INTO trainer_reports (run_id, step, policy_version, loss, ratio_mean, ratio_max, entropy, gradient_norm, event_time, source_topic)
SELECT run_id, step, step, 0.5, 1, 1.1, 0.3, 0.2, event_time, 'trainer-reports' FROM step_batches;
