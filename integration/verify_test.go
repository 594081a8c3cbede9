package integration

import (
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// verify compares what was fed with what Kafka and ClickHouse hold.
func (s *services) verify(t testing.TB, runID string, garbage bool) {
	t.Helper()
	places := s.fed(t, runID)
	if len(places) != steps*problems*groupSize {
		t.Errorf("%d places were fed, want %d", len(places), steps*problems*groupSize)
	}
	closed, members := s.grouped(t, runID)
	trained := s.batched(t, runID)
	s.checkGroups(t, places, closed, members)
	s.checkRows(t, runID, places, closed, trained)
	s.checkDeadLetters(t, garbage)
}

// fed is the places that prompts asked for. Each group must be fed once: a feeder that
// was killed may not feed it again.
func (s *services) fed(t testing.TB, runID string) map[string]bool {
	t.Helper()
	places, groups := map[string]bool{}, map[string]int{}
	s.each(t, "prompts", func(m proto.Message) {
		p, ok := m.(*sluicev1.Prompt)
		if !ok || p.GetGroup().GetRunId() != runID || p.GetAttempt() > 0 {
			return
		}
		g := identity.GroupOf(p.GetGroup())
		if groups[g.String()]++; groups[g.String()] > 1 {
			t.Errorf("group %s was fed twice", g)
		}
		for i := range p.GetGroupSize() {
			places[fmt.Sprintf("%s/%d", g, i)] = true
		}
	})
	return places
}

// grouped is the closings by group, and the copy that holds each place.
func (s *services) grouped(t testing.TB, runID string) (closed map[string]*sluicev1.GroupClosed, members map[string]uint64) {
	t.Helper()
	closed, members = map[string]*sluicev1.GroupClosed{}, map[string]uint64{}
	s.each(t, "grouped", func(m proto.Message) {
		switch m := m.(type) {
		case *sluicev1.GroupMember:
			trajectory := m.GetScored().GetTrajectory()
			if trajectory.GetPrompt().GetGroup().GetRunId() != runID {
				return
			}
			place := identity.PlaceOf(trajectory).String()
			// A member known to be lost may be refilled. Of two graded copies, both made by
			// processes of which one was killed, the one with the smaller number counts,
			// whichever came first: another one is never taken.
			held, taken := members[place]
			switch {
			case !m.GetScored().GetGraded():
				if taken && held != 0 {
					t.Errorf("place %s was given up after it was taken", place)
				}
				members[place] = 0
				return
			case held != 0 && trajectory.GetCopy() >= held:
				t.Errorf("place %s, held by copy %d, was taken by copy %d", place, held, trajectory.GetCopy())
			}
			members[place] = trajectory.GetCopy()
		case *sluicev1.GroupClosed:
			if m.GetGroup().GetRunId() != runID {
				return
			}
			g := identity.GroupOf(m.GetGroup()).String()
			if closed[g] != nil {
				t.Errorf("group %s was closed twice", g)
			}
			closed[g] = m
		}
	})
	return closed, members
}

// batched is the places that reached the trainer, each at most once, in as many
// micro-batches as each step's StepBatch said.
func (s *services) batched(t testing.TB, runID string) map[string]bool {
	t.Helper()
	announced, came, trained := map[uint64]uint32{}, map[uint64]uint32{}, map[string]bool{}
	s.each(t, "ppo-batches", func(m proto.Message) {
		switch m := m.(type) {
		case *sluicev1.StepBatch:
			if m.GetRunId() != runID {
				return
			}
			if _, twice := announced[m.GetStep()]; twice {
				t.Errorf("step %d was batched twice", m.GetStep())
			}
			announced[m.GetStep()] = m.GetMicroBatches()
		case *sluicev1.MicroBatch:
			if m.GetRunId() != runID {
				return
			}
			came[m.GetStep()]++
			for _, d := range m.GetData() {
				place := fmt.Sprintf("%s.%d/%d/%d/%d", runID, m.GetIncarnation(), m.GetStep(), d.GetSlot(), d.GetSampleIndex())
				if trained[place] {
					t.Errorf("%s is trained on twice", place)
				}
				trained[place] = true
			}
		}
	})
	for step := uint64(1); step <= steps; step++ {
		want, ok := announced[step]
		if !ok {
			t.Errorf("step %d has no StepBatch", step)
		}
		if came[step] != want {
			t.Errorf("step %d: %d micro-batches came, %d were announced", step, came[step], want)
		}
	}
	return trained
}

// checkGroups: every place that was fed stands in exactly one closing.
func (s *services) checkGroups(t testing.TB, places map[string]bool, closed map[string]*sluicev1.GroupClosed, members map[string]uint64) {
	t.Helper()
	stood := map[string]bool{}
	for g, c := range closed {
		for _, m := range c.GetMembers() {
			place := fmt.Sprintf("%s/%d", g, m.GetSampleIndex())
			stood[place] = true
			if m.GetFate() == sluicev1.MemberFate_MEMBER_FATE_MISSING {
				t.Errorf("%s never arrived", place)
			}
			if held, ok := members[place]; ok && held != 0 && held != m.GetCopy() {
				t.Errorf("%s: copy %x was taken, copy %x was closed with", place, held, m.GetCopy())
			}
		}
	}
	differ(t, "fed", places, "closed", stood)
}

// checkRows: ClickHouse has every place exactly once with its fate, and its fates agree
// with the topics.
func (s *services) checkRows(t testing.TB, runID string, places map[string]bool, closed map[string]*sluicev1.GroupClosed, trained map[string]bool) {
	t.Helper()
	ctx := ch.Context(within(t), ch.WithParameters(ch.Parameters{"run": runID}))
	conn := s.sql(t)
	rows, err := conn.Query(ctx, `
		SELECT toUInt32(incarnation), toUInt64(step), toUInt32(slot), toUInt32(sample_index), toUInt64(countIf(counted)), groupArrayIf(toString(fate), counted)
		FROM trajectory_fates WHERE run_id = {run:String} GROUP BY ALL`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	rowOf, trainedRows := map[string]bool{}, map[string]bool{}
	for rows.Next() {
		var (
			incarnation, slot, sample uint32
			step, counted             uint64
			fates                     []string
		)
		if err := rows.Scan(&incarnation, &step, &slot, &sample, &counted, &fates); err != nil {
			t.Fatal(err)
		}
		place := fmt.Sprintf("%s.%d/%d/%d/%d", runID, incarnation, step, slot, sample)
		rowOf[place] = true
		if counted != 1 || len(fates) != 1 {
			t.Errorf("ClickHouse counts %s %d times, with fates %q; want once", place, counted, fates)
			continue
		}
		switch fates[0] {
		case "pending", "late", "duplicate":
			t.Errorf("ClickHouse says that %s is %s", place, fates[0])
		case "trained":
			trainedRows[place] = true
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	differ(t, "fed", places, "in ClickHouse", rowOf)
	differ(t, "in ppo-batches", trained, "trained by ClickHouse", trainedRows)

	var groups, batches, updates uint64
	err = conn.QueryRow(ctx, `
		SELECT (SELECT toUInt64(count()) FROM groups FINAL WHERE run_id = {run:String}),
		       (SELECT toUInt64(count()) FROM step_batches FINAL WHERE run_id = {run:String}),
		       (SELECT toUInt64(uniqExact(step)) FROM policy_updates FINAL WHERE run_id = {run:String} AND step > 0)`).Scan(&groups, &batches, &updates)
	if err != nil {
		t.Fatal(err)
	}
	if int(groups) != len(closed) || batches != steps || updates != steps {
		t.Errorf("ClickHouse has %d groups, %d step batches, %d answered steps; want %d, %d, %d", groups, batches, updates, len(closed), steps, steps)
	}
}

// checkDeadLetters: nothing of the run is there, and the garbage is, with its reason.
func (s *services) checkDeadLetters(t testing.TB, garbage bool) {
	t.Helper()
	list := exec.Command(binary(t, "sluice"), "dead-letters", "list", "--json", "--brokers", strings.Join(s.brokers, ","), "--namespace", s.namespace)
	out, err := list.Output()
	if err != nil {
		t.Fatalf("sluice dead-letters: %v", err)
	}
	topics := map[string]bool{}
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		if line == "" {
			continue
		}
		var l struct {
			Letter struct {
				Topic string `json:"source_topic"`
				Class string `json:"error_type"`
				Error string `json:"error"`
			} `json:"letter"`
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if l.Letter.Class != "undecodable" {
			t.Errorf("dead letter: %s", line)
		}
		topics[strings.TrimPrefix(l.Letter.Topic, s.namespace)] = true
	}
	want := map[string]bool{}
	if garbage {
		want = map[string]bool{"prompts": true, "code-calls": true, "trajectories": true}
	}
	differ(t, "garbage", want, "dead letters", topics)
}

// each reads a topic to its end, as a read_committed consumer would.
func (s *services) each(t testing.TB, topic string, f func(proto.Message)) {
	t.Helper()
	ctx := within(t)
	name := s.namespace + topic
	ends, err := kadm.NewClient(s.client(t)).ListEndOffsets(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	left := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
		}
	})
	cl := s.client(t, kgo.ConsumeTopics(name), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	for len(left) > 0 {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("read %s: %v", name, err)
		}
		for _, r := range fetches.Records() {
			if r.Offset >= left[r.Partition]-1 {
				delete(left, r.Partition)
			}
			if r.Attrs.IsControl() {
				continue
			}
			rec := codec.Record{Key: r.Key, Value: r.Value}
			for _, h := range r.Headers {
				rec.Headers = append(rec.Headers, codec.Header{Key: h.Key, Value: h.Value})
			}
			if m, err := codec.Decode(rec); err == nil {
				f(m)
			} else if string(r.Key) != "garbage" {
				t.Errorf("%s/%d@%d: %v", name, r.Partition, r.Offset, err)
			}
		}
	}
}

// differ says which elements only one of two sets has.
func differ(t testing.TB, nameA string, a map[string]bool, nameB string, b map[string]bool) {
	t.Helper()
	only := func(x, y map[string]bool) []string {
		var out []string
		for _, k := range slices.Sorted(maps.Keys(x)) {
			if !y[k] {
				out = append(out, k)
			}
		}
		return out
	}
	if o := only(a, b); len(o) > 0 {
		t.Errorf("%s but not %s: %d of %d: %q", nameA, nameB, len(o), len(a), o[:min(len(o), 5)])
	}
	if o := only(b, a); len(o) > 0 {
		t.Errorf("%s but not %s: %d of %d: %q", nameB, nameA, len(o), len(b), o[:min(len(o), 5)])
	}
}
