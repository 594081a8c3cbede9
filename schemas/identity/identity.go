package identity

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// ErrInvalid is in the chain of every error about a name or a place.
var ErrInvalid = errors.New("invalid identity")

var runID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}$`)

// CheckRunID refuses a run id that could not stand in a topic key, an id or a file
// name: 1 to 100 of A-Z a-z 0-9 _ -.
func CheckRunID(id string) error {
	if !runID.MatchString(id) {
		return fmt.Errorf("%w: run id %q: want 1 to 100 of A-Z a-z 0-9 _ -", ErrInvalid, id)
	}
	return nil
}

// Group is a GroupPlace as a comparable value, for use as a map key.
type Group struct {
	RunID       string
	Incarnation uint32
	Step        uint64
	Slot        uint32
}

// Place is one member of a group as a comparable value.
type Place struct {
	Group
	SampleIndex uint32
}

// GroupOf converts a message; a nil message gives the zero Group.
func GroupOf(g *sluicev1.GroupPlace) Group {
	return Group{RunID: g.GetRunId(), Incarnation: g.GetIncarnation(), Step: g.GetStep(), Slot: g.GetSlot()}
}

// PlaceOf is the place of a trajectory.
func PlaceOf(t *sluicev1.Trajectory) Place {
	return Place{Group: GroupOf(t.GetPrompt().GetGroup()), SampleIndex: t.GetSampleIndex()}
}

// Proto converts back.
func (g Group) Proto() *sluicev1.GroupPlace {
	return &sluicev1.GroupPlace{RunId: g.RunID, Incarnation: g.Incarnation, Step: g.Step, Slot: g.Slot}
}

// Check refuses a group whose run id is malformed or whose step is 0.
func (g Group) Check() error {
	if err := CheckRunID(g.RunID); err != nil {
		return err
	}
	if g.Step == 0 {
		return fmt.Errorf("%w: step is 0: steps count from 1", ErrInvalid)
	}
	return nil
}

// String gives "run.incarnation/step/slot".
func (g Group) String() string {
	return fmt.Sprintf("%s.%d/%d/%d", g.RunID, g.Incarnation, g.Step, g.Slot)
}

// String gives "run.incarnation/step/slot/sample", the form people and logs use.
func (p Place) String() string {
	return p.Group.String() + "/" + strconv.FormatUint(uint64(p.SampleIndex), 10)
}

// ParsePlace reads what Place.String writes.
func ParsePlace(s string) (Place, error) {
	parts := strings.Split(s, "/")
	bad := func() (Place, error) {
		return Place{}, fmt.Errorf("%w: %q: want run.incarnation/step/slot/sample", ErrInvalid, s)
	}
	if len(parts) != 4 {
		return bad()
	}
	run, inc, ok := strings.Cut(parts[0], ".")
	if !ok || CheckRunID(run) != nil {
		return bad()
	}
	incarnation, err1 := strconv.ParseUint(inc, 10, 32)
	step, err2 := strconv.ParseUint(parts[1], 10, 64)
	slot, err3 := strconv.ParseUint(parts[2], 10, 32)
	sample, err4 := strconv.ParseUint(parts[3], 10, 32)
	if errors.Join(err1, err2, err3, err4) != nil || step == 0 {
		return bad()
	}
	return Place{
		Group:       Group{RunID: run, Incarnation: uint32(incarnation), Step: step, Slot: uint32(slot)},
		SampleIndex: uint32(sample),
	}, nil
}

// TrajectoryID is place and copy: "run.0/3/1/5~00c0ffee00c0ffee". Two trajectories
// with the same id have the same content.
func TrajectoryID(t *sluicev1.Trajectory) string {
	return fmt.Sprintf("%s~%016x", PlaceOf(t), t.GetCopy())
}

// CallID names the code call of one turn (from 0) of a trajectory.
func CallID(t *sluicev1.Trajectory, turn int) string {
	return TrajectoryID(t) + "/" + strconv.Itoa(turn)
}

// NoSample stands for the sample index in the seed of a request that samples a
// whole group at once.
const NoSample = -1

// Seed derives the sampling seed of one request: the first 64 bits of SHA-256 over
// the parts, so that a run can be repeated and no two requests share a seed.
// sampleIndex is NoSample in a fork request; turn counts from 0.
func Seed(runSeed uint64, g Group, sampleIndex int, attempt uint32, turn int) uint64 {
	var b [64]byte
	buf := binary.BigEndian.AppendUint64(b[:0], runSeed)
	buf = binary.BigEndian.AppendUint32(buf, g.Incarnation)
	buf = binary.BigEndian.AppendUint64(buf, g.Step)
	buf = binary.BigEndian.AppendUint32(buf, g.Slot)
	buf = binary.BigEndian.AppendUint64(buf, uint64(int64(sampleIndex)))
	buf = binary.BigEndian.AppendUint32(buf, attempt)
	buf = binary.BigEndian.AppendUint32(buf, uint32(turn))
	sum := sha256.Sum256(buf)
	return binary.BigEndian.Uint64(sum[:8])
}
