package step_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	"github.com/sluice-rl/sluice/schemas"
	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/custody"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
	"github.com/sluice-rl/sluice/stages/advantage-grouper/advantage"
	"github.com/sluice-rl/sluice/stages/advantage-grouper/group"
	"github.com/sluice-rl/sluice/stages/ppo-batcher/microbatch"
	"github.com/sluice-rl/sluice/stages/ppo-batcher/step"
)

var (
	now = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	id  = step.ID{RunID: "run", Incarnation: 1, Step: 3}
)

// sample is one member as the tests describe it.
type sample struct {
	reward float64
	// prompt and sampled are counts of tokens; a datum has one less than their sum.
	prompt, sampled int
	version         uint32
	lost            bool
	// spoiled: a token was changed after it was sampled.
	spoiled bool
}

// closedGroup plays a group through its own rules and returns its records in order.
func closedGroup(t interface{ Fatal(...any) }, slot, groups uint32, mode sluicev1.Mode, members ...sample) ([]*sluicev1.GroupMember, *sluicev1.GroupClosed) {
	p := &sluicev1.Prompt{
		Group:   &sluicev1.GroupPlace{RunId: id.RunID, Incarnation: id.Incarnation, Step: id.Step, Slot: slot},
		Problem: &sluicev1.Problem{QuestionId: "q"}, GroupSize: uint32(len(members)), GroupsInStep: groups, Mode: mode,
	}
	g := group.Open(p, now)
	var taken []*sluicev1.GroupMember
	for i, m := range members {
		traj := &sluicev1.Trajectory{
			Prompt: p, SampleIndex: uint32(i), Copy: 100*uint64(slot) + uint64(i) + 1,
			PromptTokens: make([]byte, tokens.Size*m.prompt), Turns: []*sluicev1.Turn{{}}, EndReason: sluicev1.EndReason_END_REASON_ANSWER,
		}
		for range m.sampled {
			traj.Turns[0].Tokens = tokens.AppendIDs(traj.Turns[0].Tokens, 7)
			traj.Turns[0].Logprobs = tokens.AppendFloats(traj.Turns[0].Logprobs, -1)
			traj.Turns[0].Versions = tokens.AppendVersion(traj.Turns[0].Versions, m.version, 1)
		}
		custody.Seal(traj)
		if m.spoiled {
			traj.Turns[0].Tokens[0]++
		}
		s := &sluicev1.Scored{Trajectory: traj, Graded: !m.lost, Reward: m.reward, Correct: m.reward > 0}
		if m.lost {
			s.UngradedReason = "lost"
		}
		if _, err := g.Join(s); err != nil {
			t.Fatal(err)
		}
		taken = append(taken, &sluicev1.GroupMember{Scored: s})
	}
	closed, err := g.Close(advantage.Rule{}, now)
	if err != nil {
		t.Fatal(err)
	}
	return taken, closed
}

// feed gives a group's records to a step.
func feed(t interface{ Fatal(...any) }, s *step.Step, members []*sluicev1.GroupMember, closed *sluicev1.GroupClosed) {
	for _, m := range members {
		s.Take(m)
	}
	if _, err := s.Close(closed); err != nil {
		t.Fatal(err)
	}
}

func batchOf(t *testing.T, r step.Rules, trainer uint32, groups ...[]sample) (*sluicev1.StepBatch, []*sluicev1.MicroBatch) {
	t.Helper()
	s := step.New(id)
	for slot, members := range groups {
		if s.Complete() {
			t.Fatal("complete before all groups are closed")
		}
		taken, closed := closedGroup(t, uint32(slot), uint32(len(groups)), sluicev1.Mode_MODE_TRAIN, members...)
		feed(t, s, taken, closed)
	}
	if !s.Complete() {
		t.Fatal("all groups are closed, but the step is not complete")
	}
	b, micro, err := r.Batch(s, trainer, now)
	if err != nil {
		t.Fatal(err)
	}
	if err := codec.Validate(b); err != nil {
		t.Error(err)
	}
	for _, m := range micro {
		if err := codec.Validate(m); err != nil {
			t.Error(err)
		}
	}
	return b, micro
}

func right(sampled int) sample { return sample{reward: 1, prompt: 4, sampled: sampled, version: 5} }
func wrong(sampled int) sample { return sample{reward: -1, prompt: 4, sampled: sampled, version: 5} }

func fates(b *sluicev1.StepBatch) string {
	var out []string
	for _, m := range b.GetMembers() {
		name := schemas.EnumText(m.GetFate())
		out = append(out, fmt.Sprintf("%d/%d %s", m.GetSlot(), m.GetSampleIndex(), name))
	}
	return strings.Join(out, ", ")
}

// What becomes of each member, one rule per row.
func TestFates(t *testing.T) {
	rules := step.DefaultRules
	rules.Context, rules.MaxStaleness = 50, 2
	lost := sample{lost: true, prompt: 4}
	old := func(s sample, version uint32) sample { s.version = version; return s }
	cases := []struct {
		rule    string
		trainer uint32
		groups  [][]sample
		n       uint32
		want    string
	}{
		{"members of a used group are trained on", 5, [][]sample{{right(3), wrong(3)}}, 2, "0/0 trained, 0/1 trained"},
		{"a degenerate group counts in N and is not packed", 5, [][]sample{{right(3), right(3)}, {right(3), wrong(3)}}, 4, "1/0 trained, 1/1 trained"},
		{"a dropped group counts nowhere", 5, [][]sample{{right(3), lost, lost}, {right(3), wrong(3)}}, 2, "1/0 trained, 1/1 trained"},
		{"an ungraded member counts nowhere", 5, [][]sample{{right(3), wrong(3), lost}}, 2, "0/0 trained, 0/1 trained"},
		{"advantage 0 in a used group is not packed", 5, [][]sample{{right(3), {reward: 0, prompt: 4, sampled: 3, version: 5}, wrong(3)}}, 3,
			"0/0 trained, 0/1 zero_advantage, 0/2 trained"},
		{"without policy tokens: graded, no datum", 5, [][]sample{{right(3), wrong(0)}}, 2, "0/0 trained, 0/1 no_policy_tokens"},
		{"not what was sampled: refused", 5, [][]sample{{right(3), {reward: -1, prompt: 4, sampled: 3, version: 5, spoiled: true}}}, 2, "0/0 trained, 0/1 custody"},
		{"as long as the context: packed", 5, [][]sample{{right(47), wrong(3)}}, 2, "0/0 trained, 0/1 trained"},
		{"longer than the context: refused", 5, [][]sample{{right(48), wrong(3)}}, 2, "0/0 too_long, 0/1 trained"},
		{"at the bound of staleness: packed", 7, [][]sample{{right(3), wrong(3)}}, 2, "0/0 trained, 0/1 trained"},
		{"beyond it: refused", 8, [][]sample{{right(3), old(wrong(3), 6)}}, 2, "0/0 stale, 0/1 trained"},
		{"a newer sample shows where the trainer is", 0, [][]sample{{right(3), old(wrong(3), 8)}}, 2, "0/0 stale, 0/1 trained"},
		{"refused before its advantage is looked at", 8, [][]sample{{right(3), {reward: 0, prompt: 4, sampled: 3, version: 5}, wrong(3)}}, 3,
			"0/0 stale, 0/1 stale, 0/2 stale"},
		{"all degenerate: a batch of nothing", 5, [][]sample{{right(3), right(3)}}, 2, ""},
		{"all dropped: a batch of nothing, N 0", 5, [][]sample{{lost, lost}}, 0, ""},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			b, micro := batchOf(t, rules, c.trainer, c.groups...)
			if got := fates(b); got != c.want {
				t.Errorf("fates %q, want %q", got, c.want)
			}
			if b.GetN() != c.n {
				t.Errorf("N = %d, want %d", b.GetN(), c.n)
			}
			if int(b.GetMicroBatches()) != len(micro) || len(micro) > 0 != (strings.Contains(c.want, "trained")) {
				t.Errorf("%d micro-batches, StepBatch says %d", len(micro), b.GetMicroBatches())
			}
		})
	}
}

func TestRefusalsSayHowMuch(t *testing.T) {
	rules := step.DefaultRules
	rules.Context = 10
	b, _ := batchOf(t, rules, 9, []sample{right(20), wrong(2)})
	if d := b.GetMembers()[0].GetDetail(); d != "23 tokens, at most 10 can be trained on" {
		t.Errorf("too long: %q", d)
	}
	m := b.GetMembers()[1]
	if m.GetStaleness() != 4 || m.GetDetail() != "oldest token of policy version 5, trainer at 9: staleness 4, at most 1" {
		t.Errorf("stale: %d, %q", m.GetStaleness(), m.GetDetail())
	}
}

// Two used groups of two, one degenerate: N is 6; three data of 9 tokens fit into one
// micro-batch, the longer one stands alone.
func TestBatch(t *testing.T) {
	rules := step.DefaultRules
	rules.Packing = microbatch.Limits{Data: 32, PaddedTokens: 30}
	b, micro := batchOf(t, rules, 5,
		[]sample{right(6), wrong(20)}, []sample{right(1), right(1)}, []sample{wrong(6), right(6)})
	want := &sluicev1.StepBatch{
		RunId: "run", Incarnation: 1, Step: 3, MicroBatches: 2, N: 6, ClipLow: 0.8, ClipHigh: 1.28,
		TokenReduction: sluicev1.TokenReduction_TOKEN_REDUCTION_SUM, PolicyVersionMin: 5, PolicyVersionMax: 5,
		GroupsUsed: 2, GroupsDegenerate: 1, Data: 4, LossTokens: 38, PaddedTokens: 23 + 27,
		Members: []*sluicev1.MemberBatched{
			{Slot: 0, SampleIndex: 0, Copy: 1, Fate: sluicev1.BatchFate_BATCH_FATE_TRAINED, MicroBatch: 1, LossTokens: 6},
			{Slot: 0, SampleIndex: 1, Copy: 2, Fate: sluicev1.BatchFate_BATCH_FATE_TRAINED, MicroBatch: 0, LossTokens: 20},
			{Slot: 2, SampleIndex: 0, Copy: 201, Fate: sluicev1.BatchFate_BATCH_FATE_TRAINED, MicroBatch: 1, LossTokens: 6},
			{Slot: 2, SampleIndex: 1, Copy: 202, Fate: sluicev1.BatchFate_BATCH_FATE_TRAINED, MicroBatch: 1, LossTokens: 6},
		},
	}
	if diff := cmp.Diff(want, b, protocmp.Transform(), protocmp.IgnoreFields(&sluicev1.StepBatch{}, "batched_at", "digest")); diff != "" {
		t.Errorf("StepBatch -want +got:\n%s", diff)
	}
	if err := custody.CheckStep(b, micro); err != nil {
		t.Error(err)
	}
	if micro[0].GetScale() != 1.0/6 || micro[1].GetScale() != 3.0/6 {
		t.Errorf("scales %v and %v, want 1/6 and 3/6", micro[0].GetScale(), micro[1].GetScale())
	}
	var got []string
	for _, m := range micro {
		for _, d := range m.GetData() {
			got = append(got, fmt.Sprintf("%d:%d/%d adv=%v", m.GetIndex(), d.GetSlot(), d.GetSampleIndex(), tokens.Float(d.GetAdvantages(), len(d.GetLossMask())-1)))
		}
	}
	wantData := []string{"0:0/1 adv=-0.16666667", "1:0/0 adv=0.5", "1:2/0 adv=-0.5", "1:2/1 adv=0.5"}
	if diff := cmp.Diff(wantData, got); diff != "" {
		t.Errorf("data -want +got:\n%s", diff)
	}
}

func TestEvaluationIsNeverTrainedOn(t *testing.T) {
	s := step.New(id)
	taken, closed := closedGroup(t, 0, 2, sluicev1.Mode_MODE_EVAL, right(3), wrong(3))
	feed(t, s, taken, closed)
	if s.Complete() || s.Training() {
		t.Errorf("complete %t, training %t after one group of evaluation of two", s.Complete(), s.Training())
	}
	taken, closed = closedGroup(t, 1, 2, sluicev1.Mode_MODE_TRAIN, right(3), wrong(3))
	feed(t, s, taken, closed)
	if !s.Complete() || !s.Training() {
		t.Errorf("complete %t, training %t after both", s.Complete(), s.Training())
	}
	b, _, err := step.DefaultRules.Batch(s, 0, now)
	if err != nil {
		t.Fatal(err)
	}
	if got := fates(b); got != "1/0 trained, 1/1 trained" || b.GetN() != 2 {
		t.Errorf("fates %q with N %d, want only slot 1", got, b.GetN())
	}
}

func TestClosingsThatConflict(t *testing.T) {
	s := step.New(id)
	_, first := closedGroup(t, 0, 3, sluicev1.Mode_MODE_TRAIN, right(1), wrong(1))
	_, other := closedGroup(t, 1, 4, sluicev1.Mode_MODE_TRAIN, right(1), wrong(1))
	if news, err := s.Close(first); !news || err != nil {
		t.Fatal(news, err)
	}
	if news, err := s.Close(first); news || err != nil {
		t.Errorf("the same closing again: news %t, %v; want neither", news, err)
	}
	if news, err := s.Close(other); !news || !errors.Is(err, step.ErrConflict) {
		t.Errorf("another number of groups: news %t, %v; want ErrConflict, and the slot closed", news, err)
	}
	_, outside := closedGroup(t, 3, 4, sluicev1.Mode_MODE_TRAIN, right(1), wrong(1))
	if news, err := s.Close(outside); news || !errors.Is(err, step.ErrConflict) {
		t.Errorf("a slot that is none of the step's: news %t, %v; want ErrConflict alone", news, err)
	}
	_, last := closedGroup(t, 2, 3, sluicev1.Mode_MODE_TRAIN, right(1), right(1))
	if _, err := s.Close(last); err != nil || !s.Complete() {
		t.Fatalf("%v, complete %t: want the step complete", err, s.Complete())
	}
	b, _, err := step.DefaultRules.Batch(s, 0, now)
	if err != nil || b.GetGroupsDropped() != 1 || b.GetGroupsUsed() != 1 || b.GetGroupsDegenerate() != 1 || b.GetN() != 4 {
		t.Errorf("%v, %v: want the refused group dropped, one used, one degenerate, N 4", b, err)
	}
}

// Advantages that do not sum to 0 would move the policy whatever the rewards were.
func TestUnbalancedAdvantagesAreRefused(t *testing.T) {
	for sum, want := range map[float64]error{1e-7: nil, 2e-6: step.ErrUnbalanced, -0.5: step.ErrUnbalanced} {
		s := step.New(id)
		taken, closed := closedGroup(t, 0, 1, sluicev1.Mode_MODE_TRAIN, right(3), wrong(3))
		closed.Members[0].Advantage += sum
		for _, m := range taken {
			s.Take(m)
		}
		if news, err := s.Close(closed); !news || !errors.Is(err, want) {
			t.Errorf("advantages sum to %v: news %t, %v; want %v", sum, news, err, want)
		}
		b, micro, err := step.DefaultRules.Batch(s, 0, now)
		if err != nil || (len(micro) > 0) != (want == nil) || (b.GetGroupsDropped() == 1) != (want != nil) {
			t.Errorf("advantages sum to %v: %d micro-batches, %v, %v", sum, len(micro), b, err)
		}
	}
}

func TestFaultsAreCounted(t *testing.T) {
	lost := sample{lost: true, prompt: 4}
	_, closed := closedGroup(t, 0, 1, sluicev1.Mode_MODE_TRAIN, right(3), wrong(3), lost, lost)
	closed.Members[2].EndReason = sluicev1.EndReason_END_REASON_INFRA_ERROR
	closed.Members[3].EndReason = sluicev1.EndReason_END_REASON_PROTOCOL_FAULT
	s := step.New(id)
	if _, err := s.Close(closed); err != nil {
		t.Fatal(err)
	}
	b, _, err := step.DefaultRules.Batch(s, 0, now)
	if err != nil || s.Arrived() != 4 || b.GetInfraErrors() != 1 || b.GetProtocolFaults() != 1 {
		t.Errorf("%v, %v: want 4 arrived, 1 infra error, 1 protocol fault", b, err)
	}
}

func TestAMemberWhoseRecordIsGone(t *testing.T) {
	s := step.New(id)
	_, closed := closedGroup(t, 0, 1, sluicev1.Mode_MODE_TRAIN, right(3), wrong(3))
	if _, err := s.Close(closed); err != nil {
		t.Fatal(err)
	}
	b, micro, err := step.DefaultRules.Batch(s, 0, now)
	if err != nil || len(micro) != 0 {
		t.Fatal(micro, err)
	}
	if d := b.GetMembers()[0].GetDetail(); d != "its record is no longer in the topic" {
		t.Errorf("detail %q", d)
	}
}

// Records doubled and groups in any order give the same batch.
func TestBatchDoesNotDependOnOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		groups := rapid.Uint32Range(1, 5).Draw(t, "groups")
		type records struct {
			members []*sluicev1.GroupMember
			closed  *sluicev1.GroupClosed
		}
		var all []records
		trainable := 0
		for slot := range groups {
			var members []sample
			for range rapid.IntRange(1, 6).Draw(t, "size") {
				members = append(members, sample{
					reward: rapid.SampledFrom([]float64{-1, 0, 1}).Draw(t, "reward"), prompt: 2,
					sampled: rapid.IntRange(0, 40).Draw(t, "sampled"), version: rapid.Uint32Range(3, 6).Draw(t, "version"),
					lost: rapid.IntRange(0, 9).Draw(t, "lost") == 0,
				})
			}
			taken, closed := closedGroup(t, slot, groups, sluicev1.Mode_MODE_TRAIN, members...)
			all = append(all, records{taken, closed})
			for _, m := range closed.GetMembers() {
				if m.GetFate() == sluicev1.MemberFate_MEMBER_FATE_USED {
					trainable++
				}
			}
		}
		rules := step.DefaultRules
		rules.Packing = microbatch.Limits{Data: 3, PaddedTokens: 60}
		rules.Context = 35
		play := func(order []int, twice bool) (*sluicev1.StepBatch, []*sluicev1.MicroBatch) {
			s := step.New(id)
			for _, i := range order {
				feed(t, s, all[i].members, all[i].closed)
				if twice {
					feed(t, s, all[i].members, all[i].closed)
				}
			}
			b, micro, err := rules.Batch(s, 6, now)
			if err != nil {
				t.Fatal(err)
			}
			return b, micro
		}
		order := make([]int, groups)
		for i := range order {
			order[i] = i
		}
		b1, m1 := play(order, false)
		rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)).Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		b2, m2 := play(order, true)
		if diff := cmp.Diff(b1, b2, protocmp.Transform()); diff != "" {
			t.Fatalf("StepBatch in order %v:\n%s", order, diff)
		}
		if diff := cmp.Diff(m1, m2, protocmp.Transform()); diff != "" {
			t.Fatalf("micro-batches in order %v:\n%s", order, diff)
		}
		if len(b1.GetMembers()) != trainable {
			t.Fatalf("%d members have a fate, want %d", len(b1.GetMembers()), trainable)
		}
	})
}

func TestRulesThatCannotBeUsed(t *testing.T) {
	for name, change := range map[string]func(*step.Rules){
		"no data":           func(r *step.Rules) { r.Packing.Data = 0 },
		"clip low 0":        func(r *step.Rules) { r.ClipLow = 0 },
		"clip high below 1": func(r *step.Rules) { r.ClipHigh = 0.9 },
		"no reduction":      func(r *step.Rules) { r.Reduction = 0 },
		"no context":        func(r *step.Rules) { r.Context = 0 },
	} {
		r := step.DefaultRules
		change(&r)
		if err := r.Validate(); !errors.Is(err, step.ErrRules) {
			t.Errorf("%s: %v, want ErrRules", name, err)
		}
	}
	if err := step.DefaultRules.Validate(); err != nil {
		t.Error(err)
	}
}

func BenchmarkBatchOf1024(b *testing.B) {
	s := step.New(id)
	for slot := range uint32(128) {
		var members []sample
		for i := range 8 {
			members = append(members, sample{reward: float64(i % 2), prompt: 200, sampled: 400 + int(slot)*20, version: 1})
		}
		taken, closed := closedGroup(b, slot, 128, sluicev1.Mode_MODE_TRAIN, members...)
		feed(b, s, taken, closed)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := step.DefaultRules.Batch(s, 1, now); err != nil {
			b.Fatal(err)
		}
	}
}
