-- Sums that must agree, one row per run: what the stages say they passed on against
-- what lies here. A difference other than 0 in a run at rest is lost or doubled work.
--
--   graded_minus_n       graded members of used and degenerate groups by the grouper's
--                        word, minus the sum of N over steps by the batcher's, over
--                        steps that were batched
--   trained_minus_data   members with fate trained, minus data in micro-batches
--   loss_tokens_difference  loss tokens of trained members, minus those announced
CREATE OR REPLACE VIEW member_checks AS
WITH
    g AS (SELECT run_id, sum(graded) AS graded FROM groups FINAL WHERE closing IN ('used', 'degenerate') AND mode = 'train' AND (run_id, incarnation, step) IN (SELECT run_id, incarnation, step FROM step_batches) GROUP BY run_id),
    b AS (SELECT run_id, sum(n) AS n, sum(data) AS data, sum(loss_tokens) AS loss_tokens FROM step_batches FINAL GROUP BY run_id),
    m AS (SELECT run_id, countIf(fate = 'trained') AS trained, sumIf(loss_tokens, fate = 'trained') AS loss_tokens FROM batch_members FINAL GROUP BY run_id),
    d AS (SELECT run_id, sum(data) AS data FROM micro_batches FINAL GROUP BY run_id)
SELECT
    b.run_id AS run_id,
    toInt64(g.graded) - toInt64(b.n) AS graded_minus_n,
    toInt64(m.trained) - toInt64(d.data) AS trained_minus_data,
    toInt64(m.loss_tokens) - toInt64(b.loss_tokens) AS loss_tokens_difference
FROM b
LEFT JOIN g ON g.run_id = b.run_id
LEFT JOIN m ON m.run_id = b.run_id
LEFT JOIN d ON d.run_id = b.run_id
SETTINGS join_use_nulls = 0;
