package perform

import (
	"context"
	"errors"

	"google.golang.org/protobuf/proto"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/replayer/replay"
)

// closedStep is what a step came to.
type closedStep struct {
	items   []Item
	summary Summary
}

// batch closes the groups of each step again and, if wanted, batches it.
func (r *run) batch(ctx context.Context) error {
	steps := r.plan.Steps()
	if r.cp.Step > len(steps) {
		return errors.New("the checkpoint has more steps than were recorded")
	}
	produce := func(_ context.Context, yield func(replay.Step) error) error {
		for _, s := range steps[r.cp.Step:] {
			if err := yield(s); err != nil {
				return err
			}
		}
		return nil
	}
	// What was buffered is read back from several goroutines.
	if err := r.buffer.sync(); err != nil {
		return err
	}
	phase := phaseBatching
	if r.Until == Groups {
		phase = phaseGrouping
	}
	err := pipeline[replay.Step, closedStep]{
		workers: r.Workers, produce: produce, work: r.closeStep, idle: r.idle, every: r.Every,
		commit: func(ctx context.Context, c closedStep) error {
			if err := r.write(ctx, c.items); err != nil {
				return err
			}
			r.cp.Summary.addStep(c.summary)
			r.cp.Step++
			return r.committed(ctx, Progress{Phase: phase, Done: int64(r.cp.Step), Share: float64(r.cp.Step) / float64(len(steps))})
		},
	}.run(ctx)
	if err == nil {
		r.Progress(Progress{Phase: phase, Done: int64(r.cp.Step), Share: 1, Ended: true})
	}
	return err
}

func (s *Summary) addStep(o Summary) {
	s.Used += o.Used
	s.Degenerate += o.Degenerate
	s.Dropped += o.Dropped
	s.IncompleteGroups += o.IncompleteGroups
	s.IncompleteSteps += o.IncompleteSteps
	s.Steps += o.Steps
	s.MicroBatches += o.MicroBatches
	for _, text := range o.Examples {
		s.example(text)
	}
}

func (r *run) closeStep(_ context.Context, s replay.Step) (closedStep, error) {
	var out closedStep
	var closed []*sluicev1.GroupClosed
	for _, recorded := range s.Groups {
		g, err := replay.Close(r.Rule, recorded, r.buffer.outcome)
		if errors.Is(err, replay.ErrIncomplete) || errors.Is(err, replay.ErrInput) {
			out.summary.IncompleteGroups++
			out.summary.example(err.Error())
			continue
		}
		if err != nil {
			return out, err
		}
		switch g.GetClosing() {
		case sluicev1.Closing_CLOSING_USED:
			out.summary.Used++
		case sluicev1.Closing_CLOSING_DEGENERATE:
			out.summary.Degenerate++
		default:
			out.summary.Dropped++
		}
		closed = append(closed, g)
		item, err := r.item(topicGrouped, g, g.GetClosedAt().AsTime())
		if err != nil {
			return out, err
		}
		out.items = append(out.items, item)
	}
	if r.Until != Batches {
		return out, nil
	}
	batch, micro, err := replay.Batch(r.Batches, s, closed, r.buffer.trajectory)
	switch {
	case errors.Is(err, replay.ErrNoBatch):
		return out, nil
	case errors.Is(err, replay.ErrIncomplete), errors.Is(err, replay.ErrInput):
		out.summary.IncompleteSteps++
		out.summary.example(err.Error())
		return out, nil
	case err != nil:
		return out, err
	}
	out.summary.Steps++
	out.summary.MicroBatches += int64(len(micro))
	at := batch.GetBatchedAt().AsTime()
	messages := []proto.Message{batch}
	for _, m := range micro {
		messages = append(messages, m)
	}
	for _, m := range messages {
		item, err := r.item(topicBatches, m, at)
		if err != nil {
			return out, err
		}
		out.items = append(out.items, item)
	}
	return out, nil
}
