package tokens_test

import (
	"fmt"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
)

// A turn of three tokens, of which a weight update interrupted the last.
func Example() {
	turn := &sluicev1.Turn{Tokens: tokens.IDs(9906, 11, 1917), Logprobs: tokens.Floats(-0.5, -0.25, -2)}
	turn.Versions = tokens.AppendVersion(turn.Versions, 6, 2)
	turn.Versions = tokens.AppendVersion(turn.Versions, 7, 1)

	fmt.Println(tokens.ReadIDs(turn.GetTokens()), tokens.ReadFloats(turn.GetLogprobs()), tokens.ReadVersions(turn.GetVersions()))
	fmt.Println(tokens.Count(turn.GetTokens()), tokens.ID(turn.GetTokens(), 2), tokens.Float(turn.GetLogprobs(), 2))
	// Output:
	// [9906 11 1917] [-0.5 -0.25 -2] [6 6 7]
	// 3 1917 -2
}
