// Package replaytest records runs for tests: it plays trajectories through the rules of
// scoring, grouping and batching, without a broker, and keeps what each stage wrote.
package replaytest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sluice-rl/sluice/schemas/archive"
	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/custody"
	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
	"github.com/sluice-rl/sluice/stages/advantage-grouper/advantage"
	"github.com/sluice-rl/sluice/stages/advantage-grouper/group"
	"github.com/sluice-rl/sluice/stages/ppo-batcher/step"
	"github.com/sluice-rl/sluice/stages/reward-scorer/reward"
	"github.com/sluice-rl/sluice/stages/reward-scorer/scoring"
)

// Shape says what run is recorded.
type Shape struct {
	Seed                uint64
	Steps, Groups, Size int
	Rewards             *reward.Set // nil: reward.Default()
	Rules               step.Rules  // zero: step.DefaultRules
	Partitions          int32       // 0: 4
	Tokens              int         // of one turn, at most; 0: 20
	Text                int         // characters before the answer
	// Calm: every member arrives once, graded.
	Calm bool
}

// Run is what a run left behind.
type Run struct {
	// Trajectories has every finished copy, also what was written twice.
	Trajectories []*sluicev1.Trajectory
	Scored       []*sluicev1.Scored
	Members      []*sluicev1.GroupMember
	Closed       []*sluicev1.GroupClosed
	Batches      []*sluicev1.StepBatch
	Micro        []*sluicev1.MicroBatch

	shape Shape
	rng   *rand.Rand
	clock time.Time
}

// Begin is when every run starts.
var Begin = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// Record records a run.
func Record(s Shape) *Run {
	if s.Rewards == nil {
		s.Rewards = reward.Default()
	}
	if s.Rules.Context == 0 {
		s.Rules = step.DefaultRules
	}
	if s.Partitions == 0 {
		s.Partitions = 4
	}
	if s.Tokens == 0 {
		s.Tokens = 20
	}
	r := &Run{shape: s, rng: rand.New(rand.NewPCG(s.Seed, 1)), clock: Begin}
	for n := 1; n <= s.Steps; n++ {
		r.step(uint64(n))
	}
	return r
}

// tick is the next moment: no two things happen at once.
func (r *Run) tick() *timestamppb.Timestamp {
	r.clock = r.clock.Add(time.Duration(1+r.rng.IntN(50)) * time.Millisecond)
	return timestamppb.New(r.clock)
}

// chance is true once in n times, never where the run is calm.
func (r *Run) chance(n int) bool { return !r.shape.Calm && r.rng.IntN(n) == 0 }

func (r *Run) step(n uint64) {
	s := step.New(step.ID{RunID: "run", Step: n})
	for slot := range r.shape.Groups {
		members, closed := r.group(n, uint32(slot))
		for _, m := range members {
			s.Take(m)
		}
		if _, err := s.Close(closed); err != nil {
			panic(err)
		}
		r.Members, r.Closed = append(r.Members, members...), append(r.Closed, closed)
	}
	if !s.Complete() {
		panic("the step is not complete")
	}
	if !s.Training() {
		return
	}
	// The trainer is at n; some members were sampled one version before.
	batch, micro, err := r.shape.Rules.Batch(s, uint32(n), r.tick().AsTime())
	if err != nil {
		panic(err)
	}
	r.Batches, r.Micro = append(r.Batches, batch), append(r.Micro, micro...)
}

func (r *Run) group(n uint64, slot uint32) (members []*sluicev1.GroupMember, closed *sluicev1.GroupClosed) {
	question := r.rng.IntN(50)
	prompt := &sluicev1.Prompt{
		Group: &sluicev1.GroupPlace{RunId: "run", Step: n, Slot: slot},
		Problem: &sluicev1.Problem{
			QuestionId: fmt.Sprintf("q%d", question), Question: "What is it?", Answer: fmt.Sprint(question),
			DataSource: []string{"gsm8k", "math"}[question%2],
		},
		Budgets:  &sluicev1.Budgets{CodeCalls: 4, Turns: 6, TrajectoryTokens: 8192, TurnTokens: 1024, ObservationTokens: 512, ExecutionTimeoutMs: 30000},
		Sampling: &sluicev1.SamplingParameters{Temperature: 1, TopP: 1}, GroupSize: uint32(r.shape.Size), GroupsInStep: uint32(r.shape.Groups),
		Mode: sluicev1.Mode_MODE_TRAIN, ToolEnabled: true, ToolProtocol: "qwen", FedAt: r.tick(),
	}
	if r.chance(8) {
		prompt.Mode = sluicev1.Mode_MODE_EVAL
	}
	g := group.Open(prompt, r.tick().AsTime())
	hard := r.rng.IntN(3) // 0: nobody solves it, 1: some do, 2: all do
	for i := range r.shape.Size {
		if r.chance(15) {
			continue // missing at the deadline
		}
		t := r.trajectory(prompt, uint32(i), hard == 2 || hard == 1 && r.rng.IntN(2) == 0)
		if r.chance(12) {
			lost := proto.Clone(t).(*sluicev1.Trajectory)
			lost.Copy, lost.EndReason, lost.EndDetail, lost.Turns, lost.FinalText = t.GetCopy()+1, sluicev1.EndReason_END_REASON_INFRA_ERROR, "sandbox gone", nil, ""
			members = append(members, r.take(g, lost)...)
			if r.chance(2) {
				continue // and not made again
			}
		}
		members = append(members, r.take(g, t)...)
		if r.chance(10) {
			again := r.trajectory(prompt, uint32(i), true)
			members = append(members, r.take(g, again)...)
		}
		if r.chance(20) {
			r.Trajectories = append(r.Trajectories, t) // the same copy written twice
		}
	}
	closed, err := g.Close(advantage.Rule{}, r.tick().AsTime())
	if err != nil {
		panic(err)
	}
	return members, proto.Clone(closed).(*sluicev1.GroupClosed)
}

// take scores a trajectory and lets it join its group.
func (r *Run) take(g *group.Group, t *sluicev1.Trajectory) []*sluicev1.GroupMember {
	r.Trajectories = append(r.Trajectories, t)
	var s *sluicev1.Scored
	if scoring.Ungraded(t) != "" {
		s = scoring.Of(t, nil)
	} else {
		s = scoring.Of(t, scoring.Score(context.Background(), r.shape.Rewards, []reward.Input{scoring.InputOf(t)})[0])
	}
	s.ScoredAt = r.tick()
	r.Scored = append(r.Scored, s)
	counts, err := g.Join(s)
	if err != nil {
		panic(err)
	}
	if !counts {
		return nil
	}
	return []*sluicev1.GroupMember{{Scored: s, TakenAt: r.tick()}}
}

func (r *Run) trajectory(p *sluicev1.Prompt, index uint32, right bool) *sluicev1.Trajectory {
	t := &sluicev1.Trajectory{
		Prompt: p, SampleIndex: index, Copy: r.rng.Uint64() | 2, PromptTokens: r.tokens(1 + r.shape.Tokens/4),
		StartedAt: r.tick(), EndReason: sluicev1.EndReason_END_REASON_ANSWER,
	}
	turns := 1 + r.rng.IntN(3)
	for i := range turns {
		n := 1 + r.rng.IntN(r.shape.Tokens)
		turn := &sluicev1.Turn{Tokens: r.tokens(n), Kind: sluicev1.TurnKind_TURN_KIND_ANSWER}
		for range n {
			turn.Logprobs = tokens.AppendFloats(turn.Logprobs, -r.rng.Float32())
			turn.Versions = tokens.AppendVersion(turn.Versions, uint32(p.GetGroup().GetStep())-uint32(r.rng.IntN(2)), 1)
		}
		if i < turns-1 {
			turn.Kind, turn.Code, turn.Text = sluicev1.TurnKind_TURN_KIND_TOOL, "print(1)", "<tool_call>"+strings.Repeat("x", r.shape.Text/2)
			turn.Execution = &sluicev1.Execution{CallId: "c", Outcome: sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_OK, Stdout: "1\n"}
			turn.Observation, turn.GlueTokens = "1\n", r.tokens(5)
			t.CodeCalls++
			t.Executions++
		}
		t.Turns = append(t.Turns, turn)
	}
	answer := p.GetProblem().GetAnswer()
	if !right {
		answer += "1"
	}
	t.FinalText = strings.Repeat("so ", r.shape.Text/3) + `\boxed{` + answer + `}`
	if r.chance(9) {
		t.FinalText = "I do not know"
	}
	t.Turns[turns-1].Text = t.FinalText
	t.EndedAt = r.tick()
	custody.SealAll(t)
	return t
}

func (r *Run) tokens(n int) []byte {
	out := make([]uint32, n)
	for i := range out {
		out[i] = r.rng.Uint32N(150_000)
	}
	return tokens.IDs(out...)
}

// Messages are what lies in a topic, in the order in which it was written.
func (r *Run) Messages(topic string) []proto.Message {
	var out []proto.Message
	switch topic {
	case "trajectories":
		out = messages(r.Trajectories)
	case "scored":
		out = messages(r.Scored)
	case "grouped":
		out = append(messages(r.Members), messages(r.Closed)...)
	case "ppo-batches":
		out = append(messages(r.Batches), messages(r.Micro)...)
	}
	return out
}

func messages[M proto.Message](ms []M) []proto.Message {
	out := make([]proto.Message, len(ms))
	for i, m := range ms {
		out[i] = m
	}
	return out
}

// Records are the same as records by partition and offset, as an archive has them.
func (r *Run) Records(topic string) []archive.Record {
	parts := make([][]archive.Record, r.shape.Partitions)
	for i, m := range r.Messages(topic) {
		rec, err := codec.Encode(m)
		if err != nil {
			panic(err)
		}
		p := int32(len(rec.Key)+int(rec.Key[len(rec.Key)-1])) % r.shape.Partitions
		parts[p] = append(parts[p], archive.Record{
			Topic: topic, Partition: p, Offset: int64(len(parts[p])), Time: Begin.Add(time.Duration(i) * time.Millisecond), Record: rec,
		})
	}
	var out []archive.Record
	for _, part := range parts {
		out = append(out, part...)
	}
	return out
}

// Topics are those that a run has.
var Topics = []string{"trajectories", "scored", "grouped", "ppo-batches"}

// Copies names the copies of every place, for tests that look for duplicates.
func (r *Run) Copies() map[identity.Place]int {
	n := map[identity.Place]int{}
	for _, s := range r.Scored {
		n[identity.PlaceOf(s.GetTrajectory())]++
	}
	return n
}
