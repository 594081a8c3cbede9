package up

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/topology"
)

// progress is what the topics say of the run, as far as they were read.
type progress struct {
	mu sync.Mutex
	// answered is the last step that the trainer answered, of the newest incarnation.
	answered    uint64
	incarnation uint32
	version     uint32
	// members taken into groups, and code calls of theirs.
	members, codeCalls, ungraded int
	deadLetters                  int
	// rewards per step: sums over graded members of closed groups.
	steps map[uint64]*stepReward
	// shown is the trajectory that illustrates best, so far.
	shown      *sluicev1.Scored
	shownScore int
}

type stepReward struct {
	sum    float64
	graded int
	groups int
}

func (r stepReward) mean() float64 { return r.sum / float64(max(r.graded, 1)) }

// follow reads grouped, policy-updates and dead-letters from the start and on, until
// the context ends. Only the run's own records count.
func (s *system) follow(ctx context.Context, p *progress) error {
	grouped := topology.Name(s.o.Namespace, "grouped")
	updates := topology.Name(s.o.Namespace, "policy-updates")
	letters := topology.Name(s.o.Namespace, "dead-letters")
	cl, err := kgo.NewClient(append(s.connect(),
		kgo.ClientID("sluice-up"), kgo.ConsumeTopics(grouped, updates, letters),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
	)...)
	if err != nil {
		return fmt.Errorf("kafka client: %w", err)
	}
	defer cl.Close()
	for {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		// Errors are the broker's absence; the client keeps trying.
		fetches.EachRecord(func(r *kgo.Record) {
			rec := codec.Record{Key: r.Key, Value: r.Value}
			for _, h := range r.Headers {
				rec.Headers = append(rec.Headers, codec.Header{Key: h.Key, Value: h.Value})
			}
			carried := s.topology.Topics[strings.TrimPrefix(r.Topic, s.o.Namespace)].Records
			m, err := codec.Decode(rec, carried...)
			if err != nil {
				return // the stages' business: it becomes a dead letter there
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			switch m := m.(type) {
			case *sluicev1.GroupMember:
				p.member(s.run.RunID, m.GetScored())
			case *sluicev1.GroupClosed:
				p.closed(s.run.RunID, m)
			case *sluicev1.PolicyUpdate:
				p.update(s.run.RunID, m)
			case *sluicev1.DeadLetter:
				if id := m.GetOrigin().GetGroup().GetRunId(); id == s.run.RunID || id == "" {
					p.deadLetters++
				}
			}
		})
	}
}

func (p *progress) member(runID string, m *sluicev1.Scored) {
	t := m.GetTrajectory()
	if t.GetPrompt().GetGroup().GetRunId() != runID {
		return
	}
	p.members++
	p.codeCalls += int(t.GetCodeCalls())
	if !m.GetGraded() {
		p.ungraded++
	}
	// Later ones win, since the policy has learnt since.
	if score := illustrates(m); score >= p.shownScore {
		p.shown, p.shownScore = m, score
	}
}

func (p *progress) closed(runID string, m *sluicev1.GroupClosed) {
	if m.GetGroup().GetRunId() != runID {
		return
	}
	if p.steps == nil {
		p.steps = map[uint64]*stepReward{}
	}
	r := p.steps[m.GetGroup().GetStep()]
	if r == nil {
		r = &stepReward{}
		p.steps[m.GetGroup().GetStep()] = r
	}
	r.groups++
	r.graded += int(m.GetGraded())
	r.sum += m.GetRewardMean() * float64(m.GetGraded())
}

func (p *progress) update(runID string, m *sluicev1.PolicyUpdate) {
	if m.GetRunId() != runID || m.GetIncarnation() < p.incarnation {
		return
	}
	if m.GetIncarnation() > p.incarnation {
		p.incarnation, p.answered = m.GetIncarnation(), 0
	}
	p.answered = max(p.answered, m.GetStep())
	p.version = max(p.version, m.GetPolicyVersion())
}

// illustrates ranks trajectories by how much of the loop they show: best one that ran
// a program, saw it fail, mended it and was right.
func illustrates(m *sluicev1.Scored) int {
	score, failed := 0, false
	for _, turn := range m.GetTrajectory().GetTurns() {
		switch turn.GetExecution().GetOutcome() {
		case sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_UNSPECIFIED:
		case sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_OK:
			score = max(score, 2)
			if failed {
				score = 4
			}
		default:
			failed = true
			score = max(score, 1)
		}
	}
	if m.GetCorrect() && score > 0 {
		score++
	}
	return score
}
