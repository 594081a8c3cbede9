-- Who waits for whom? Length of the parts of each step and idle time of sampler and
-- trainer, milliseconds; as view step_phases has them.
-- A step that was remade after a roll-back is shown as remade.
SELECT step, rollout_ms, grouping_ms, training_ms, sampler_idle_ms, trainer_idle_ms
FROM step_phases
WHERE run_id = {run:String}
ORDER BY step, incarnation DESC
LIMIT 1 BY step;
