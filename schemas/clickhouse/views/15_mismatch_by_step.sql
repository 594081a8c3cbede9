-- How far sampler and trainer are from each other, by step: mismatch_by_trajectory over all
-- tokens that were annotated. Means are over tokens, not over trajectories.
--
--   data                 annotated trajectories
--   outside_low_share    tokens below the lower clip bound before the update / tokens
--   outside_high_share   tokens above the upper one / tokens
CREATE OR REPLACE VIEW mismatch_by_step AS
SELECT
    run_id,
    incarnation,
    step,
    count() AS data,
    sum(n) AS tokens,
    sum(mean * n) / tokens AS mismatch_mean,
    sum(abs_mean * n) / tokens AS mismatch_abs_mean,
    max(abs_max) AS mismatch_abs_max,
    sum(k3 * n) / tokens AS kl,
    max(most) AS ratio_max,
    sum(low) / tokens AS outside_low_share,
    sum(high) / tokens AS outside_high_share,
    if(countIf(isNotNull(e)) = 0, NULL, sum(e * n) / sumIf(n, isNotNull(e))) AS entropy_mean
FROM
(
    SELECT
        run_id, incarnation, step, tokens AS n, mismatch_mean AS mean, mismatch_abs_mean AS abs_mean, mismatch_abs_max AS abs_max,
        kl AS k3, ratio_max AS most, outside_low AS low, outside_high AS high, entropy_mean AS e
    FROM mismatch_by_trajectory
)
GROUP BY run_id, incarnation, step;
