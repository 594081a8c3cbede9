package main

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/prompt-feeder/dataset"
)

// progress is how far a run has come, as the trainer's answers say.
type progress struct {
	incarnation uint32
	// done is the last answered step, 0 before the first.
	done uint64
}

// observe takes an answer into account and says whether it moved anything. Answers
// of an earlier incarnation, and of earlier steps, are passed over; a later incarnation
// is a trainer that rolled back to the step it names.
func (p *progress) observe(u *sluicev1.PolicyUpdate) bool {
	older := u.GetIncarnation() < p.incarnation
	known := u.GetIncarnation() == p.incarnation && u.GetStep() <= p.done
	if older || known {
		return false
	}
	*p = progress{incarnation: u.GetIncarnation(), done: u.GetStep()}
	return true
}

// fed is up to where a run is in the topic: steps are fed whole and in order.
type fed struct {
	incarnation uint32
	step        uint64
}

// has says whether a step is there. A later incarnation has begun only after the trainer
// left the one before.
func (f fed) has(incarnation uint32, step uint64) bool {
	return f.incarnation > incarnation || f.incarnation == incarnation && f.step >= step
}

// source gives the problem at each position of a run.
type source struct {
	file  *dataset.File
	order dataset.Order
	// inOrder: file order, as an evaluation has it.
	inOrder bool
}

// at gives the epoch and row of a position, counted from 0 over all steps.
func (s source) at(position uint64) (epoch uint64, row dataset.Row, err error) {
	index := int(position % uint64(s.file.Len()))
	epoch = position / uint64(s.file.Len())
	if !s.inOrder {
		epoch, index = s.order.At(position)
	}
	row, err = s.file.Row(index)
	return epoch, row, err
}

// groups is the number of slots of a step: less than the rest only in the last step
// of an evaluation.
func (f *feeder) groups(step uint64, rows int) uint32 {
	if f.mode == "train" {
		return f.problems
	}
	rest := uint64(rows) - (step-1)*uint64(f.problems)
	return uint32(min(uint64(f.problems), rest))
}

// lastStep is the step after which the run is complete, 0 if there is none.
func (f *feeder) lastStep(rows int) uint64 {
	if f.mode == "train" {
		return f.steps
	}
	return (uint64(rows) + uint64(f.problems) - 1) / uint64(f.problems)
}

// stepPrompts builds the prompts of a step.
func (f *feeder) stepPrompts(s source, incarnation uint32, step uint64, now time.Time) ([]*sluicev1.Prompt, error) {
	var prompts []*sluicev1.Prompt
	groups := f.groups(step, s.file.Len())
	for slot := range groups {
		group := identity.Group{RunID: f.runID, Incarnation: incarnation, Step: step, Slot: slot}
		epoch, row, err := s.at((step-1)*uint64(f.problems) + uint64(slot))
		if err != nil {
			return nil, err
		}
		p := f.prompt(&sluicev1.Problem{QuestionId: row.ID, Question: row.Question, Answer: row.Answer, DataSource: row.DataSource}, group, groups)
		p.Epoch = uint32(epoch)
		p.FedAt = timestamppb.New(now)
		prompts = append(prompts, p)
	}
	return prompts, nil
}

func (f *config) prompt(problem *sluicev1.Problem, group identity.Group, groups uint32) *sluicev1.Prompt {
	mode := sluicev1.Mode_MODE_TRAIN
	if f.mode == "eval" {
		mode = sluicev1.Mode_MODE_EVAL
	}
	p := &sluicev1.Prompt{
		Group:     group.Proto(),
		Problem:   problem,
		GroupSize: f.groupSize, GroupsInStep: groups,
		Budgets: &sluicev1.Budgets{
			CodeCalls: f.codeCalls, Turns: f.turns, TrajectoryTokens: f.tokens, TurnTokens: f.turnTokens,
			ObservationTokens: f.obsTokens, ExecutionTimeoutMs: uint32(f.execution.Milliseconds()),
		},
		Sampling:    &sluicev1.SamplingParameters{Temperature: f.temperature, TopP: f.topP, TopK: f.topK},
		Mode:        mode,
		ToolEnabled: !f.textOnly,
		RunSeed:     f.seed,
	}
	if p.ToolEnabled {
		p.ToolProtocol = f.protocol
	}
	return p
}
