-- A piece of one long text of a turn, by characters from 0.
-- default length=100000
SELECT substringUTF8(multiIf({field:String} = 'text', text, {field:String} = 'code', code, {field:String} = 'observation', observation, {field:String} = 'stdout', stdout, {field:String} = 'stderr', stderr, ''), {from:UInt64} + 1, {length:UInt64}) AS piece
FROM turns
WHERE run_id = {run:String} AND incarnation = {incarnation:UInt32} AND step = {step:UInt64} AND slot = {slot:UInt32} AND sample_index = {sample:UInt32} AND copy = {copy:UInt64}
    AND turn = {turn:UInt32}
LIMIT 1;
