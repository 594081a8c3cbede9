-- One trajectory: how it ended, what it was paid, where it lies in Kafka. Long texts are
-- cut; question text asks for the rest.
SELECT run_id, incarnation, step, slot, sample_index, toString(trajectories.copy) AS copy, attempt, question_id, data_source, mode,
    substringUTF8(question, 1, 4000) AS question, lengthUTF8(question) AS question_length, substringUTF8(reference_answer, 1, 1000) AS reference_answer,
    group_size, groups_in_step, tool_enabled, epoch, temperature, top_p, end_reason, substringUTF8(end_detail, 1, 1000) AS end_detail, ended_by,
    turns, code_calls, executions, truncated_turns, aborts, failed_attempts, length(prompt_tokens) AS prompt_tokens, policy_tokens, glue_tokens, trajectory_tokens,
    policy_version_min, policy_version_max, logprobs_mode, dialect,
    graded, substringUTF8(ungraded_reason, 1, 1000) AS ungraded_reason, reward, correct, valid_format, substringUTF8(answer, 1, 1000) AS answer,
    verdict, verdict_method, substringUTF8(verdict_reason, 1, 1000) AS verdict_reason, substringUTF8(gold_read, 1, 1000) AS gold_read, substringUTF8(pred_read, 1, 1000) AS pred_read,
    scorer, scorer_version, score_names, score_versions, score_rewards, score_errors,
    fed_at, started_at, ended_at, scored_at, source_topic, source_partition, toString(source_offset) AS source_offset
FROM trajectories
WHERE run_id = {run:String} AND incarnation = {incarnation:UInt32} AND step = {step:UInt64} AND slot = {slot:UInt32} AND sample_index = {sample:UInt32} AND trajectories.copy = {copy:UInt64}
LIMIT 1;
