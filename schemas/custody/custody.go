package custody

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
)

// ErrBroken occurs when a turn's digest does not fit the trajectory: its tokens, their
// logprobs or versions are not those that were recorded.
var ErrBroken = errors.New("custody is broken")

// Size is how many bytes a digest has.
const Size = sha256.Size

// first begins the chain of a trajectory.
const first = "sluice custody 1"

// Seal gives the last turn of a trajectory its digest, to be called whenever its arrays
// have changed. The turns before keep theirs. It does nothing without turns.
func Seal(t *sluicev1.Trajectory) {
	turns := t.GetTurns()
	if len(turns) == 0 {
		return
	}
	last := len(turns) - 1
	var before []byte
	if last > 0 {
		before = turns[last-1].GetDigest()
	} else {
		before = beginning(t)
	}
	turns[last].Digest = of(before, turns[last])
}

// SealAll gives every turn its digest: for trajectories that did not grow turn by turn.
func SealAll(t *sluicev1.Trajectory) {
	before := beginning(t)
	for _, turn := range t.GetTurns() {
		turn.Digest = of(before, turn)
		before = turn.GetDigest()
	}
}

// Check says whether the turns are those that were sealed. Its error is ErrBroken and
// names the first turn that is not.
func Check(t *sluicev1.Trajectory) error {
	if len(t.GetTurns()) == 0 {
		return nil
	}
	before := beginning(t)
	for i, turn := range t.GetTurns() {
		now := of(before, turn)
		if got := turn.GetDigest(); len(got) == 0 {
			return fmt.Errorf("%w: turn %d bears no digest", ErrBroken, i)
		} else if string(got) != string(now) {
			return fmt.Errorf("%w: turn %d of %d tokens and %d glue tokens bears digest %.8x, its arrays have %.8x",
				ErrBroken, i, tokens.Count(turn.GetTokens()), tokens.Count(turn.GetGlueTokens()), got, now)
		}
		before = now
	}
	return nil
}

func beginning(t *sluicev1.Trajectory) []byte {
	h := sha256.New()
	h.Write([]byte(first))
	array(h, t.GetPromptTokens())
	return h.Sum(nil)
}

func of(before []byte, turn *sluicev1.Turn) []byte {
	h := sha256.New()
	h.Write(before)
	array(h, turn.GetTokens())
	array(h, turn.GetLogprobs())
	var spans []byte
	for _, s := range turn.GetVersions() {
		spans = tokens.AppendIDs(spans, s.GetVersion(), s.GetCount())
	}
	count(h, len(turn.GetVersions()))
	h.Write(spans)
	array(h, turn.GetGlueTokens())
	return h.Sum(nil)
}

func array(h hash.Hash, values []byte) {
	count(h, tokens.Count(values))
	h.Write(values)
}

func count(h hash.Hash, n int) { h.Write(binary.LittleEndian.AppendUint64(nil, uint64(n))) }
