-- Where the time of each step went: view step_phases says what the phases are.
SELECT step, incarnation, rollout_ms, grouping_ms, training_ms, sampler_idle_ms, trainer_idle_ms, first_sample_at, answered_at
FROM step_phases
WHERE run_id = {run:String}
ORDER BY step, incarnation DESC
LIMIT 1 BY step;
