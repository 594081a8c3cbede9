package replay

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/reward-scorer/reward"
	"github.com/sluice-rl/sluice/stages/reward-scorer/scoring"
)

// Recorded is a message that holds a trajectory, and when its record was written.
type Recorded struct {
	// Body is a *sluicev1.Scored or a *sluicev1.Trajectory.
	Body proto.Message
	Time time.Time
}

// trajectory takes the trajectory and its date out of a record.
func (r Recorded) trajectory() (*sluicev1.Trajectory, *timestamppb.Timestamp, error) {
	var t *sluicev1.Trajectory
	var at *timestamppb.Timestamp
	switch m := r.Body.(type) {
	case *sluicev1.Scored:
		t, at = m.GetTrajectory(), m.GetScoredAt()
	case *sluicev1.Trajectory:
		t, at = m, m.GetEndedAt()
	default:
		return nil, nil, fmt.Errorf("%w: a %s holds no trajectory: want Scored or Trajectory", ErrInput, codec.TypeName(r.Body))
	}
	if at == nil {
		at = timestamppb.New(r.Time)
	}
	return t, at, nil
}

// Score gives each recorded trajectory its new score, in order. A context that ends
// makes the scores of remote rewards void: they are then not returned.
func Score(ctx context.Context, set *reward.Set, recorded []Recorded) ([]*sluicev1.Scored, error) {
	scored := make([]*sluicev1.Scored, len(recorded))
	var gradable []*sluicev1.Trajectory
	var in []reward.Input
	var places []int
	for i, r := range recorded {
		t, at, err := r.trajectory()
		if err != nil {
			return nil, err
		}
		if scoring.Ungraded(t) != "" {
			scored[i] = scoring.Of(t, nil)
		} else {
			gradable, in, places = append(gradable, t), append(in, scoring.InputOf(t)), append(places, i)
			scored[i] = &sluicev1.Scored{}
		}
		scored[i].ScoredAt = at
	}
	results := scoring.Score(ctx, set, in)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for k, i := range places {
		at := scored[i].GetScoredAt()
		scored[i] = scoring.Of(gradable[k], results[k])
		scored[i].ScoredAt = at
	}
	return scored, nil
}
