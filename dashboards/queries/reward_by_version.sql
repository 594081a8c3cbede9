-- What did the policy do, version by version? Success of graded beside graded share,
-- all-graded reward beside trained-on, self-correction, token faults. Denominators:
-- view version_summary.
SELECT incarnation, policy_version, trajectories, graded_share, correct_rate, reward_mean, reward_mean_trained, trained_share, retry_rate, self_fix_rate, protocol_fault_share, code_length_mean
FROM version_summary
WHERE run_id = {run:String}
ORDER BY incarnation, policy_version;
