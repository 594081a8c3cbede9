// Package rewardfile reads the file that configures rewards.
//
// It reads YAML of this form and returns a *reward.Set:
//
//	decides: outcome            # the reward whose scores become advantages
//	rewards:
//	  - name: outcome           # as it appears in scores
//	    kind: outcome           # outcome | zero_one | format_bonus | retool_shaped | expression | http
//	    version: "1"            # optional label; see below
//	    box: {window: 300, strictness: balanced, choice: last, thought: read}
//	    equivalence: {profile: sound, decimals: 6, strict: false}
//	    read_invalid_calls: false
//	  - name: bonus
//	    kind: format_bonus
//	    bonus: 0.1
//	  - name: shaped
//	    kind: retool_shaped
//	    per_turn: 0.1
//	    limit: -0.6
//	  - name: thrifty
//	    kind: expression
//	    expression: |
//	      correct ? 1.0 - 0.05 * double(code_calls) : -1.0
//	    cost_limit: 20000
//	  - name: judge
//	    kind: http
//	    url: http://127.0.0.1:9000/score
//	    timeout: 10s
//	    attempts: 3
//	    batch: 64
//	    token_file: /run/secrets/judge
//
// With thought: must_end a text whose last <think> never ends has no answer, for
// policies that think aloud. With strict: true nothing may be left out that the
// reference says: a unit, a sign for per cent, a word.
//
// A verifier of kind http is asked as package remote says; a redirect is not followed.
//
// Every field but name and kind may be left out. The version that travels with
// a score is the label (default "1"), and behind it a hash of the entry unless
// the entry is a kind alone, so that two configurations never share a version.
//
// It promises that a file that is wrong in any way is refused, with the line: a
// key that is unknown, of another kind of reward, given twice or without a value, a value
// of the wrong kind or out of range, a second document.
package rewardfile
