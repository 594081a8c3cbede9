package runner

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/topology"
)

func outlining(t testing.TB) ClusterConfig {
	t.Helper()
	top, err := topology.Default()
	if err != nil {
		t.Fatal(err)
	}
	return ClusterConfig{Topology: top, outlines: true}
}

func kafkaRecord(t testing.TB, o Output) *kgo.Record {
	t.Helper()
	r, err := ClusterConfig{Topology: outlining(t).Topology}.encode(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A stage that reads outlines writes the trajectory as it came, token for token, with
// what a later version put into it.
func TestWhatAnOutlineStandsForIsPassedOn(t *testing.T) {
	c := outlining(t)
	sent := fullCall(1)
	sent.Trajectory.ProtoReflect().SetUnknown(protowire.AppendString(protowire.AppendTag(nil, 1000, protowire.BytesType), "later"))
	m, err := Decode(c, kafkaRecord(t, Output{Topic: "code-calls", Body: sent}))
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Body.(*sluicev1.CodeCall).GetTrajectory(); len(got.GetPromptTokens()) != 0 || len(got.GetTurns()[0].GetTokens()) != 0 || got.GetTurns()[0].GetCode() == "" {
		t.Errorf("the outline has %d prompt tokens, %d tokens and code %q; want none, none and the code",
			len(got.GetPromptTokens()), len(got.GetTurns()[0].GetTokens()), got.GetTurns()[0].GetCode())
	}
	if want := 600 + 4*680; m.Tokens != want {
		t.Errorf("%d tokens, want %d", m.Tokens, want)
	}
	r, err := c.encode(result(m)[0])
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode(ClusterConfig{Topology: c.Topology}, r)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sent.GetTrajectory(), back.Body.(*sluicev1.CodeResult).GetTrajectory(), protocmp.Transform()); diff != "" {
		t.Errorf("the trajectory changed on its way (-sent +back):\n%s", diff)
	}
}

func TestAnOutlineIsNotWrittenForTheWhole(t *testing.T) {
	c := outlining(t)
	m, err := Decode(c, kafkaRecord(t, Output{Topic: "code-calls", Body: fullCall(1)}))
	if err != nil {
		t.Fatal(err)
	}
	o := result(m)[0]
	o.Trajectory = nil
	if _, err := c.encode(o); !errors.Is(err, ErrConfig) {
		t.Errorf("writing an outline: %v, want ErrConfig", err)
	}
}

func TestARecordWithABrokenTrajectoryHasNoOutline(t *testing.T) {
	c := outlining(t)
	for name, r := range map[string]*kgo.Record{
		"poison": poison(t, "code-calls", fullCall(1)),
		"unequal lengths": func() *kgo.Record {
			call := fullCall(1)
			call.Trajectory.Turns[0].Logprobs = call.Trajectory.Turns[0].Logprobs[1:]
			r := kafkaRecord(t, Output{Topic: "code-calls", Body: fullCall(1)})
			rec, err := codec.Rebuild(call, codec.SchemaVersion)
			if err != nil {
				t.Fatal(err)
			}
			r.Value = rec.Value
			return r
		}(),
	} {
		if m, err := Decode(c, r); err == nil || m.Body != nil || m.Trajectory != nil {
			t.Errorf("%s: %v with body %v", name, err, m.Body)
		}
	}
}
