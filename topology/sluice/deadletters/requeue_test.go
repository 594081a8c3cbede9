package deadletters_test

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/topology/sluice/deadletters"
)

func headers(r *kgo.Record) (hs []codec.Header) {
	for _, h := range r.Headers {
		hs = append(hs, codec.Header{Key: h.Key, Value: h.Value})
	}
	return hs
}

// A trajectory goes back as another copy of itself; the copy that was given up is counted
// already.
func TestATrajectoryGoesBackAsANewCopy(t *testing.T) {
	p := &sluicev1.Prompt{
		Group: &sluicev1.GroupPlace{RunId: "run", Step: 2}, Problem: &sluicev1.Problem{QuestionId: "q"}, GroupSize: 2, GroupsInStep: 1, Mode: sluicev1.Mode_MODE_TRAIN,
	}
	rec, err := codec.Encode(&sluicev1.Trajectory{Prompt: p, SampleIndex: 1, Copy: 7, EndReason: sluicev1.EndReason_END_REASON_ANSWER})
	if err != nil {
		t.Fatal(err)
	}
	letter := deadletters.Letter{Offset: 3, Body: &sluicev1.DeadLetter{Stage: "reward-scorer", SourceTopic: "trajectories", Key: rec.Key, Value: rec.Value}}
	for _, h := range rec.Headers {
		letter.Body.Headers = append(letter.Body.Headers, &sluicev1.RecordHeader{Key: h.Key, Value: h.Value})
	}
	draws := []uint64{0, 99}
	r, err := letter.Requeue(func() uint64 { d := draws[0]; draws = draws[1:]; return d })
	if err != nil {
		t.Fatal(err)
	}
	m, err := codec.Decode(codec.Record{Key: r.Key, Value: r.Value, Headers: headers(r)})
	if err != nil {
		t.Fatal(err)
	}
	back := m.(*sluicev1.Trajectory)
	if back.GetCopy() != 99 || back.GetSampleIndex() != 1 || r.Topic != "trajectories" || string(r.Key) != "q" {
		t.Errorf("back to %s under %q: %v; want copy 99 of the same place", r.Topic, r.Key, back)
	}
	o, ok := codec.Origin(headers(r))
	if !ok || o.GetCopy() != 99 {
		t.Errorf("origin %v, want copy 99", o)
	}
	if last := r.Headers[len(r.Headers)-1]; last.Key != deadletters.HeaderRequeued || string(last.Value) != "0/3" {
		t.Errorf("header %s = %s, want the letter's id", last.Key, last.Value)
	}
}

func TestWhatCannotBeReadGoesBackAsItIsAndWhatIsNotThereDoesNot(t *testing.T) {
	letter := deadletters.Letter{Body: &sluicev1.DeadLetter{
		SourceTopic: "prompts", SourceOffset: 5, Key: []byte("k"), Value: []byte("\xff"), Headers: []*sluicev1.RecordHeader{{Key: "sluice-type", Value: []byte("Prompt")}},
	}}
	r, err := letter.Requeue(nil)
	if err != nil || string(r.Value) != "\xff" || string(r.Key) != "k" || len(r.Headers) != 2 {
		t.Errorf("%v, %v; want the bytes that were there", r, err)
	}
	letter.Body.Value = nil
	if _, err := letter.Requeue(nil); !errors.Is(err, deadletters.ErrLeftOut) {
		t.Errorf("%v, want ErrLeftOut", err)
	}
}
