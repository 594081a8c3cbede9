-- Was anything lost or doubled? All differences are 0 in a run at rest.
SELECT graded_minus_n, trained_minus_data, loss_tokens_difference
FROM member_checks
WHERE run_id = {run:String};
