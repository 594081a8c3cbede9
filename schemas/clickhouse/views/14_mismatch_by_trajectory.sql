-- How far sampler and trainer are from each other, by datum of a step: what the trainer's
-- weights of before the update say of the sampled tokens, beside what the sampler said.
-- With d = the trainer's logprob - the sampler's, of a token:
--
--   mismatch_mean        mean d
--   mismatch_abs_mean    mean |d|
--   mismatch_abs_max     greatest |d|
--   kl                   mean of exp(d) - d - 1: an estimate of KL(sampler || trainer) that is
--                        never below 0 (k3, http://joschu.net/blog/kl-approx.html)
--   ratio_max            greatest exp(d): 1 at the first update of an on-policy step
--   outside_low, _high   tokens whose exp(d) lies below, above the batch's clip bounds before
--                        the update has begun; NULL if the batch is not there
--   entropy_mean         mean of the entropy; NULL if it was not measured
-- A datum that was annotated again has its latest row.
CREATE OR REPLACE VIEW mismatch_by_trajectory AS
WITH
    a AS
    (
        SELECT
            run_id, incarnation, step, slot, sample_index, copy, policy_version, entropy,
            arrayMap((q, b) -> toFloat64(q) - b, logprobs, behaviour_logprobs) AS d
        FROM trainer_annotations FINAL
        ORDER BY source_offset DESC
        LIMIT 1 BY run_id, incarnation, step, slot, sample_index, copy
    ),
    b AS
    (
        SELECT run_id, incarnation, step, any(clip_low) AS low, any(clip_high) AS high
        FROM step_batches FINAL
        GROUP BY run_id, incarnation, step
    )
SELECT
    a.run_id AS run_id,
    a.incarnation AS incarnation,
    a.step AS step,
    a.slot AS slot,
    a.sample_index AS sample_index,
    a.copy AS copy,
    a.policy_version AS policy_version,
    length(a.d) AS tokens,
    arrayAvg(a.d) AS mismatch_mean,
    arrayAvg(x -> abs(x), a.d) AS mismatch_abs_mean,
    arrayMax(x -> abs(x), a.d) AS mismatch_abs_max,
    arrayAvg(x -> exp(x) - x - 1, a.d) AS kl,
    arrayMax(x -> exp(x), a.d) AS ratio_max,
    if(b.high = 0, NULL, arrayCount(x -> exp(x) < b.low, a.d)) AS outside_low,
    if(b.high = 0, NULL, arrayCount(x -> exp(x) > b.high, a.d)) AS outside_high,
    if(empty(a.entropy), NULL, arrayAvg(a.entropy)) AS entropy_mean
FROM a
LEFT JOIN b ON b.run_id = a.run_id AND b.incarnation = a.incarnation AND b.step = a.step
SETTINGS join_use_nulls = 0;
