package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/internal/status"
	"github.com/sluice-rl/sluice/stages/ppo-batcher/step"
)

const (
	topicDeadLetters = "dead-letters"
	topicRuns        = "runs"
)

// refuse writes the dead letter of a closing that cannot be used. Its group counts as
// closed and dropped all the same: a step that waited for it would stop its run.
func (m *machine) refuse(e *kafka.Effects, msg kafka.Message, g *sluicev1.GroupClosed, why error, now time.Time) {
	class := "refused"
	if errors.Is(why, step.ErrUnbalanced) {
		class = "unbalanced"
	}
	m.metrics.refused.WithLabelValues(class).Inc()
	m.log.Error("closing refused: its group counts as dropped", "error_type", class, "offset", msg.Offset, "error", why)
	e.Outputs = append(e.Outputs, kafka.Output{Topic: topicDeadLetters, Body: &sluicev1.DeadLetter{
		Stage: name, SourceTopic: msg.Topic, SourcePartition: msg.Partition, SourceOffset: msg.Offset, Key: []byte(msg.Key),
		ErrorType: class, Error: strings.ToValidUTF8(why.Error(), "\uFFFD") + " (the group counts as dropped; the record lies at its offset)",
		DeliveryCount: 1, Origin: codec.OriginOf(g), FailedAt: timestamppb.New(now),
	}})
}

// limits are the shares of a step's trajectories that may end by a fault of ours before
// its run is stopped; 0: it goes on whatever they are.
type limits struct{ protocolFaults, infraErrors float64 }

// warnAbove is the share of either fault of which people are warned.
const warnAbove = 0.05

// faults warns of a step in which too many trajectories ended by a fault of ours, and stops
// its run where that is asked for.
func (m *machine) faults(e *kafka.Effects, s *step.Step, b *sluicev1.StepBatch, now time.Time) {
	arrived := s.Arrived()
	if arrived == 0 {
		return
	}
	for _, f := range []struct {
		name  string
		count uint32
		limit float64
	}{
		{"protocol_fault", b.GetProtocolFaults(), m.cfg.limits.protocolFaults},
		{"infra_error", b.GetInfraErrors(), m.cfg.limits.infraErrors},
	} {
		share := float64(f.count) / float64(arrived)
		note := f.name + " in run " + b.GetRunId()
		if share <= warnAbove && (f.limit == 0 || share <= f.limit) {
			m.board.Clear(note)
			continue
		}
		text := fmt.Sprintf("step %d: %d of %d trajectories (%.0f%%) ended as %s", b.GetStep(), f.count, arrived, 100*share, f.name)
		m.board.Note(note, status.Note{Text: text})
		m.log.Warn("many trajectories ended by a fault of ours", "run", b.GetRunId(), "step", b.GetStep(), "end_reason", f.name, "share", share)
		if f.limit > 0 && share > f.limit {
			e.Outputs = append(e.Outputs, kafka.Output{Topic: topicRuns, Body: &sluicev1.RunStop{
				RunId: b.GetRunId(), Reason: fmt.Sprintf("%s, the limit is %.0f%%", text, 100*f.limit), Stage: name, StoppedAt: timestamppb.New(now),
			}})
		}
	}
}
