-- How do trajectories end? Per policy version and end reason; share is of the version's
-- trajectories that count.
SELECT incarnation, policy_version_max AS policy_version, end_reason, count() AS trajectories, count() / sum(count()) OVER (PARTITION BY incarnation, policy_version) AS share, countIf(correct) AS right_answers
FROM trajectory_fates
WHERE run_id = {run:String} AND counted AND mode = 'train'
GROUP BY incarnation, policy_version, end_reason
ORDER BY incarnation, policy_version, trajectories DESC;
