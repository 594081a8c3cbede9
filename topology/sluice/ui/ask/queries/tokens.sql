-- The tokens of one turn: sampled ones (loss mask 1) with their logprobs, then glue (0).
-- The first 4096 of each, and how many there are.
SELECT arraySlice(tokens, 1, 4096) AS tokens, arraySlice(logprobs, 1, 4096) AS logprobs, arraySlice(glue_tokens, 1, 4096) AS glue,
    length(turns.tokens) AS tokens_length, length(turns.glue_tokens) AS glue_length, policy_version_min, policy_version_max
FROM turns
WHERE run_id = {run:String} AND incarnation = {incarnation:UInt32} AND step = {step:UInt64} AND slot = {slot:UInt32} AND sample_index = {sample:UInt32} AND copy = {copy:UInt64}
    AND turn = {turn:UInt32}
LIMIT 1;
