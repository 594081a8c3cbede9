package perform

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/sluice-rl/sluice/schemas/archive"
	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/replayer/replay"
)

// rescored is a batch after scoring.
type rescored struct {
	all      []member
	summary  Summary
	examples []string
	behind   Position
	share    float64
}

type member struct {
	replay.Member
	replay.Outcome
	item Item
	kept []byte
	// failed: the reward that decides failed on it.
	failed bool
	// Beside the recorded score.
	reward, correct, wrong bool
}

func (r *run) score(ctx context.Context) error {
	bounds := r.cp.Bounds[r.Trajectories]
	produce := func(ctx context.Context, yield func(Batch) error) error {
		return r.Source.Read(ctx, r.Trajectories, bounds, r.cp.Position, yield)
	}
	err := pipeline[Batch, rescored]{
		workers: r.Workers, produce: produce, work: r.rescore, idle: r.idle, every: r.Every,
		commit: func(ctx context.Context, c rescored) error {
			if err := r.commitScores(ctx, c); err != nil {
				return err
			}
			return r.committed(ctx, Progress{Phase: phaseScoring, Done: r.cp.Summary.Read, Share: c.share})
		},
	}.run(ctx)
	if err == nil {
		r.Progress(Progress{Phase: phaseScoring, Done: r.cp.Summary.Read, Share: 1, Ended: true})
	}
	return err
}

// rescore is the work on one batch.
func (r *run) rescore(ctx context.Context, b Batch) (rescored, error) {
	records, err := b.Records()
	out := rescored{behind: b.Behind, share: b.Share, summary: Summary{Read: int64(len(records))}}
	if err != nil {
		return out, err
	}
	var recorded []replay.Recorded
	for _, rec := range records {
		if !r.Select.Placed(rec) || !r.Select.Said(rec) {
			out.summary.NotMeant++
			continue
		}
		m, err := rec.Decode()
		if err == nil {
			if kind := codec.TypeName(m); kind != "Scored" && kind != "Trajectory" {
				err = fmt.Errorf("a %s, which is no trajectory", kind)
			}
		}
		if err != nil {
			out.summary.Unreadable++
			out.examples = append(out.examples, fmt.Sprintf("%s/%d@%d: %v", rec.Topic, rec.Partition, rec.Offset, err))
			continue
		}
		recorded = append(recorded, replay.Recorded{Body: m, Time: rec.Time})
	}
	scored, err := replay.Score(ctx, r.Rewards, recorded)
	if err != nil {
		return out, err
	}
	for i, s := range scored {
		m, err := r.memberOf(s)
		if err != nil {
			return out, err
		}
		if len(s.GetScores()) > 0 && !s.GetGraded() {
			m.failed = true
			out.examples = append(out.examples, fmt.Sprintf("%s: ungraded: %s", m.Place, s.GetUngradedReason()))
		}
		if old, ok := recorded[i].Body.(*sluicev1.Scored); ok {
			m.reward = old.GetReward() != s.GetReward() || old.GetGraded() != s.GetGraded()
			if old.GetGraded() && s.GetGraded() {
				m.correct = s.GetCorrect() && !old.GetCorrect()
				m.wrong = old.GetCorrect() && !s.GetCorrect()
			}
		}
		out.all = append(out.all, m)
	}
	return out, nil
}

// memberOf is a new score of a recorded trajectory.
func (r *run) memberOf(s *sluicev1.Scored) (member, error) {
	t := s.GetTrajectory()
	m := member{Member: replay.MemberOf(t), Outcome: replay.OutcomeOf(s)}
	rec, err := codec.Encode(s)
	if err == nil {
		m.item, err = r.itemOf(topicScored, rec, s.GetScoredAt().AsTime())
	}
	if err != nil {
		return m, err
	}
	if r.Until == Batches && s.GetGraded() && r.plan.Trains(m.Member) {
		// All of it, as it is encoded already.
		m.kept = rec.Value
	} else {
		m.kept, err = buffered(s)
	}
	return m, err
}

// item encodes a message of the output.
func (r *run) item(topic string, m proto.Message, at time.Time) (Item, error) {
	rec, err := codec.Encode(m)
	if err != nil {
		return Item{}, err
	}
	return r.itemOf(topic, rec, at)
}

func (r *run) itemOf(topic string, rec codec.Record, at time.Time) (Item, error) {
	out := Item{Topic: topic, Time: at, Record: rec}
	var err error
	if r.Sink.WantsJSON() {
		out.JSON, err = archive.JSONBody(rec)
	}
	return out, err
}

func (r *run) commitScores(ctx context.Context, c rescored) error {
	var items []Item
	sum := &r.cp.Summary
	for _, m := range c.all {
		if _, seen := r.buffer.outcome(m.Member); seen {
			sum.Repeated++
			continue
		}
		if err := r.buffer.add(m.Member, m.Outcome, m.kept); err != nil {
			return err
		}
		items = append(items, m.item)
		count(&sum.Graded, m.Graded)
		count(&sum.RewardFailed, m.failed)
		count(&sum.RewardChanged, m.reward)
		count(&sum.NowCorrect, m.correct)
		count(&sum.NowWrong, m.wrong)
	}
	if err := r.write(ctx, items); err != nil {
		return err
	}
	sum.Scored += int64(len(items))
	sum.Read += c.summary.Read
	sum.NotMeant += c.summary.NotMeant
	sum.Unreadable += c.summary.Unreadable
	for _, text := range c.examples {
		sum.example(text)
	}
	r.cp.Position = c.behind
	return nil
}

func count(n *int64, yes bool) {
	if yes {
		*n++
	}
}
