package kafka

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/topology"
)

func defaultCluster(t testing.TB) ClusterConfig {
	t.Helper()
	top, err := topology.Default()
	if err != nil {
		t.Fatal(err)
	}
	return ClusterConfig{Topology: top}
}

func kafkaRecord(t testing.TB, o Output) *kgo.Record {
	t.Helper()
	r, err := defaultCluster(t).encode(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A stage writes the trajectory as it came, token for token, with what a later version
// put into it.
func TestATrajectoryIsPassedOnWhole(t *testing.T) {
	c := defaultCluster(t)
	sent := fullCall(1)
	sent.Trajectory.ProtoReflect().SetUnknown(protowire.AppendString(protowire.AppendTag(nil, 1000, protowire.BytesType), "later"))
	m, err := Decode(c, kafkaRecord(t, Output{Topic: "code-calls", Body: sent}))
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.encode(result(m)[0])
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode(c, r)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sent.GetTrajectory(), back.Body.(*sluicev1.CodeResult).GetTrajectory(), protocmp.Transform()); diff != "" {
		t.Errorf("the trajectory changed on its way (-sent +back):\n%s", diff)
	}
}

func TestARecordWithABrokenTrajectoryHasNoBody(t *testing.T) {
	c := defaultCluster(t)
	for name, r := range map[string]*kgo.Record{
		"poison": poison(t, "code-calls", fullCall(1)),
		"unequal lengths": func() *kgo.Record {
			call := fullCall(1)
			call.Trajectory.Turns[0].Logprobs = call.Trajectory.Turns[0].Logprobs[4:]
			r := kafkaRecord(t, Output{Topic: "code-calls", Body: fullCall(1)})
			rec, err := codec.Rebuild(call, codec.SchemaVersion)
			if err != nil {
				t.Fatal(err)
			}
			r.Value = rec.Value
			return r
		}(),
	} {
		if m, err := Decode(c, r); err == nil || m.Body != nil {
			t.Errorf("%s: %v with body %v", name, err, m.Body)
		}
	}
}
