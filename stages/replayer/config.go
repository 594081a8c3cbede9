package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sluice-rl/sluice/schemas/archive"
	"github.com/sluice-rl/sluice/stages/advantage-grouper/advantage"
	"github.com/sluice-rl/sluice/stages/ppo-batcher/step"
	"github.com/sluice-rl/sluice/stages/replayer/perform"
	"github.com/sluice-rl/sluice/stages/reward-scorer/reward"
	"github.com/sluice-rl/sluice/stages/reward-scorer/reward/rewardfile"
	"github.com/sluice-rl/sluice/topology"
	"github.com/sluice-rl/sluice/topology/cluster"
	"github.com/sluice-rl/sluice/topology/process"
)

// config is what the flags set. Those of rewards, advantages and batches are the stages'
// own, as the original was run with them.
type config struct {
	cluster.Config
	rewards rewardfile.Flags
	rule    advantage.Rule
	batches step.Rules
	sel     archive.Selection

	id, from, archive, to, format, state, until string
	parallel                                    int
	// set is what validate made of the rewards.
	set *reward.Set
}

func (c *config) register(flags *process.Flags) {
	f := flags.Group("Replay")
	f.StringVar(&c.id, "id", "", "names the replay: 1 to 40 of A-Z a-z 0-9 _ -")
	f.StringVar(&c.until, "until", string(perform.Groups), "how far to go: scores, groups (scores too) or batches (all three)")
	f.StringVar(&c.to, "to", "", "folder for the result, as an archive; without it topics")
	f.StringVar(&c.format, "format", "", "of the archive in --to: jsonl (default) or parquet")
	f.StringVar(&c.state, "state", "", "folder for the checkpoint (default: .sluice/replay/ID, or .replay in --to)")
	f.IntVar(&c.parallel, "parallel", 0, "chunks of trajectories scored at once (0: one per processor)")
	f = flags.Group("What is replayed")
	f.StringVar(&c.archive, "archive", "", "archive to replay from, a folder or a file; without it Kafka")
	f.StringVar(&c.from, "from", "scored", "topic of the trajectories: scored or trajectories")
	c.sel.Register(f)
	c.rewards.Register(flags.Group("Reward, as of reward-scorer"))
	c.rule.Register(flags.Group("Advantages, as of advantage-grouper"))
	c.batches.Register(flags.Group("Batches, as of ppo-batcher"))
	c.Register(flags.Group("Kafka"))
}

func (c *config) validate() error {
	if err := topology.CheckReplayID(c.id); err != nil {
		return fmt.Errorf("--id, a new one for each replay: %w", err)
	}
	if c.parallel < 0 {
		return fmt.Errorf("--parallel is %d, want 0 or more", c.parallel)
	}
	if err := c.sel.Check(); err != nil {
		return err
	}
	if err := c.validateOutput(); err != nil {
		return err
	}
	replay := perform.Config{Until: perform.Until(c.until), Select: c.sel, Batches: c.batches, Trajectories: c.from}
	if err := replay.Check(); err != nil {
		return err
	}
	if c.archive != "" {
		if _, err := os.Stat(c.archive); err != nil {
			return fmt.Errorf("--archive: %w", err)
		}
	}
	check := c.Check
	if c.archive != "" && c.to != "" {
		check = c.CheckOptional
	}
	if err := check(); err != nil {
		return err
	}
	var err error
	c.set, err = c.rewards.Set()
	return err
}

func (c *config) validateOutput() error {
	switch {
	case c.to == "" && c.format != "":
		return errors.New("--format is of an archive: name its folder by --to, or leave --format out to write topics")
	case c.format != "" && c.format != archive.JSONL && c.format != archive.Parquet:
		return fmt.Errorf("--format is %q, want %s or %s", c.format, archive.JSONL, archive.Parquet)
	}
	for _, format := range []string{archive.JSONL, archive.Parquet} {
		if c.to != "" && filepath.Ext(c.to) == "."+format {
			return fmt.Errorf("--to is %q: want a folder, in which each topic gets a file; --format %s says what they are", c.to, format)
		}
	}
	if c.format == "" {
		c.format = archive.JSONL
	}
	return nil
}

// fingerprint stands for all that decides what comes out.
func (c *config) fingerprint() (string, error) {
	var rewards []byte
	if c.rewards.File != "" {
		var err error
		if rewards, err = os.ReadFile(c.rewards.File); err != nil {
			return "", err
		}
	}
	source := c.Namespace
	if c.archive != "" {
		var err error
		if source, err = filepath.Abs(c.archive); err != nil {
			return "", err
		}
	}
	b, err := json.Marshal([]any{rewards, c.rewards.ReadInvalidCalls, c.until, c.archive != "", source, c.from, c.sel, c.to != "", c.format, c.rule, c.batches})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}
