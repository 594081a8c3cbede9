package vectors

// tamperings are changes of the recorded batch in testdata to each of which checkRollouts
// must object.
var tamperings = [][2]string{
	{`"final_text": "It is \\boxed{2}"`, `"final_text": "It is \\boxed{4}"`},
	{`"answer": "2"`, `"answer": "3"`},
	{`"reward": 1.0`, `"reward": 0.5`},
	{`"valid_format": true`, `"valid_format": false`},
	{`"advantage": 1.3`, `"advantage": 1.4`},
	{`"input_sha": "`, `"input_sha": "0`},
	{`"target_sha": "`, `"target_sha": "0`},
	{`"logprobs_f32_sha": "`, `"logprobs_f32_sha": "0`},
	{`"advantages_f32_sha": "`, `"advantages_f32_sha": "0`},
	{`"loss_tokens": `, `"loss_tokens": 1`},
	{`"reward/mean": -0.3`, `"reward/mean": -0.4`},
	{`"train/padded_tokens_per_rollout_batch": `, `"train/padded_tokens_per_rollout_batch": 1`},
	{`"reward/mean"`, `"reward/unknown"`},
	{`"observations": ["2\n"]`, `"observations": ["3\n"]`},
}
