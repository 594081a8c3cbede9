-- What the trainer computed of a trajectory's sampled tokens, in order, before the update;
-- its latest word.
SELECT policy_version, logprobs, entropy, annotated_at
FROM trainer_annotations FINAL
WHERE run_id = {run:String} AND incarnation = {incarnation:UInt32} AND step = {step:UInt64} AND slot = {slot:UInt32} AND sample_index = {sample:UInt32} AND copy = {copy:UInt64}
ORDER BY source_offset DESC
LIMIT 1;
