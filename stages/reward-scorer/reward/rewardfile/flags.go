package rewardfile

import (
	"errors"
	"net/http"
	"os"

	"github.com/spf13/pflag"

	"github.com/sluice-rl/sluice/stages/reward-scorer/reward"
)

// FileUsage explains a flag that takes a reward file.
const FileUsage = "YAML file that names the rewards and which of them decides; without it the reward is 'outcome', +1 or -1"

// Flags are how a program is told its rewards.
type Flags struct {
	// File is the path of a reward file; empty: the reward is outcome.
	File string
	// ReadInvalidCalls is of the reward outcome; a file says it for itself.
	ReadInvalidCalls bool
}

// Register declares the flags.
func (c *Flags) Register(f *pflag.FlagSet) {
	f.StringVar(&c.File, "reward", "", FileUsage)
	f.BoolVar(&c.ReadInvalidCalls, "read-invalid-calls", false,
		"look for an answer in the final text of a trajectory that ended with a malformed tool call; without it such a trajectory is wrong unread")
}

// Set reads the rewards, the deciding one first.
func (c *Flags) Set() (*reward.Set, error) {
	switch {
	case c.File != "" && c.ReadInvalidCalls:
		return nil, errors.New("--reward and --read-invalid-calls exclude each other: write `read_invalid_calls: true` at the reward in the file")
	case c.File != "":
		return Load(c.File, Deps{Transport: http.DefaultTransport, ReadFile: os.ReadFile})
	}
	return reward.NewSet("outcome", reward.Scorer{
		Name: "outcome", Version: "1", Logic: reward.Outcome(), Rules: reward.Rules{ReadInvalidCalls: c.ReadInvalidCalls},
	})
}
