package codec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// A message put around a trajectory's bytes is the record that Encode would have made,
// also where only the outline of the trajectory was decoded.
func TestEncodeHoldingIsEncode(t *testing.T) {
	unknown := protowire.AppendString(protowire.AppendTag(nil, 1000, protowire.BytesType), "from a later version")
	later := scored()
	later.ProtoReflect().SetUnknown(unknown)
	later.GetTrajectory().ProtoReflect().SetUnknown(unknown)
	result := &sluicev1.CodeResult{Trajectory: call().Trajectory, CallId: "c", Execution: trajectory().Turns[0].Execution}
	ungraded := &sluicev1.Scored{Trajectory: trajectory(), UngradedReason: "why"}
	for name, m := range map[string]proto.Message{
		"a call": call(), "a result": result, "graded": scored(), "ungraded": ungraded, "with fields of a later version": later,
		"a member": &sluicev1.GroupMember{Scored: later, TakenAt: at},
	} {
		want, err := Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		bytes, err := Encode(trajectoryOf(m))
		if _, isCall := m.(*sluicev1.CodeCall); isCall || m == proto.Message(result) {
			bytes, err = Rebuild(trajectoryOf(m), SchemaVersion) // not ended: no record of its own
		}
		if err != nil {
			t.Fatal(err)
		}
		outlined, _ := withoutArrays(m)
		for what, m := range map[string]proto.Message{"whole": m, "outlined": outlined} {
			got, err := EncodeHolding(m, bytes.Value)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, %s (-Encode +EncodeHolding):\n%s", name, what, diff)
			}
		}
		if _, isMember := m.(*sluicev1.GroupMember); !isMember {
			if diff := cmp.Diff(bytes.Value, TrajectoryBytes(TypeName(m), want.Value)); diff != "" {
				t.Errorf("%s: bytes of its trajectory (-want +got):\n%s", name, diff)
			}
		}
	}
}

func TestEncodeHoldingRefuses(t *testing.T) {
	for name, m := range map[string]proto.Message{
		"graded without scores":       &sluicev1.Scored{Trajectory: trajectory(), Graded: true},
		"what holds no trajectory":    prompt(),
		"a call without a trajectory": &sluicev1.CodeCall{CallId: "c"},
	} {
		if _, err := EncodeHolding(m, nil); err == nil {
			t.Errorf("%s was encoded", name)
		}
	}
}

func TestTrajectoryBytesOfWhatHasNone(t *testing.T) {
	twice := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), []byte("a"))
	twice = append(twice, twice...)
	for name, value := range map[string][]byte{
		"empty": nil, "no trajectory": protowire.AppendVarint(protowire.AppendTag(nil, 2, protowire.VarintType), 1),
		"two of them": twice, "broken": {0xff}, "no message": protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 1),
	} {
		if b := TrajectoryBytes("Scored", value); b != nil {
			t.Errorf("%s: %q, want nil", name, b)
		}
	}
	if b := TrajectoryBytes("Prompt", []byte("x")); b != nil {
		t.Errorf("a Prompt: %q, want nil", b)
	}
}
