package state

import (
	"errors"
	"fmt"

	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/policy"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/ppo"
)

// Format is the version of the file. It rises when an older build would misread it.
const Format = 1

// MaxAnswers bounds the answers that are kept; older StepBatches are not answered
// again.
const MaxAnswers = 512

var (
	// ErrNewer: the file was written by a newer version of simpolicy.
	ErrNewer = errors.New("state of a newer format")
	// ErrInUse: another process holds the run's state.
	ErrInUse = errors.New("state is in use by another process")
	// ErrUnusable: the file is there, but is no state of this run and policy.
	ErrUnusable = errors.New("state cannot be used")
)

// Answer is what was said to one StepBatch.
type Answer struct {
	Incarnation   uint32 `json:"incarnation"`
	Step          uint64 `json:"step"`
	PolicyVersion uint32 `json:"policy_version"`
	Trained       bool   `json:"trained"`
	// Report is the encoded TrainerReport.
	Report []byte `json:"report"`
	// Published: update and report were acknowledged by the broker.
	Published bool `json:"published"`
}

// State is all of it.
type State struct {
	PolicyVersion uint32
	Parameters    policy.Parameters
	Optimizer     ppo.Optimizer
	// Answers, oldest first.
	Answers []Answer
	// Positions say from which offset of each partition of ppo-batches to read on.
	Positions map[int32]int64
}

// New is the state before the first step.
func New() State {
	return State{Parameters: policy.Initial(), Optimizer: ppo.NewOptimizer(), Positions: map[int32]int64{}}
}

// Answer finds the answer to a step; ok is false if there is none.
func (s *State) Answer(incarnation uint32, step uint64) (a Answer, ok bool) {
	for i := len(s.Answers) - 1; i >= 0; i-- {
		if a := s.Answers[i]; a.Incarnation == incarnation && a.Step == step {
			return a, true
		}
	}
	return Answer{}, false
}

// Append adds an answer and forgets what lies too far back.
func (s *State) Append(a Answer) {
	s.Answers = append(s.Answers, a)
	if over := len(s.Answers) - MaxAnswers; over > 0 {
		s.Answers = append([]Answer(nil), s.Answers[over:]...)
	}
}

// file is the state as JSON.
type file struct {
	Format        int              `json:"format"`
	What          string           `json:"what"`
	RunID         string           `json:"run_id"`
	Vocabulary    string           `json:"vocabulary"`
	PolicyVersion uint32           `json:"policy_version"`
	Parameters    named            `json:"parameters"`
	Adam          adam             `json:"adam"`
	Answers       []Answer         `json:"answers"`
	Positions     map[string]int64 `json:"positions"`
}

type named map[string]map[string]float64

type adam struct {
	Steps  int   `json:"steps"`
	First  named `json:"first"`
	Second named `json:"second"`
}

func toFile(s State, runID, vocabulary string) file {
	f := file{
		Format: Format, What: "simpolicy's parameters and place in ppo-batches", RunID: runID, Vocabulary: vocabulary,
		PolicyVersion: s.PolicyVersion, Parameters: s.Parameters.Named(),
		Adam:    adam{s.Optimizer.Steps, s.Optimizer.First.Named(), s.Optimizer.Second.Named()},
		Answers: s.Answers, Positions: map[string]int64{},
	}
	for p, o := range s.Positions {
		f.Positions[fmt.Sprint(p)] = o
	}
	return f
}

func fromFile(f file, runID, vocabulary string) (State, error) {
	if f.RunID != runID {
		return State{}, fmt.Errorf("%w: it belongs to run %q, not %q", ErrUnusable, f.RunID, runID)
	}
	if f.Vocabulary != vocabulary {
		return State{}, fmt.Errorf("%w: it was trained with vocabulary %q, this build has %q: start a new run", ErrUnusable, f.Vocabulary, vocabulary)
	}
	s := State{PolicyVersion: f.PolicyVersion, Answers: f.Answers, Positions: map[int32]int64{}}
	s.Optimizer.Steps = f.Adam.Steps
	for _, part := range []struct {
		name string
		from named
		to   *policy.Parameters
	}{
		{"parameters", f.Parameters, &s.Parameters},
		{"adam.first", f.Adam.First, &s.Optimizer.First},
		{"adam.second", f.Adam.Second, &s.Optimizer.Second},
	} {
		p, err := policy.FromNamed(part.from)
		if err != nil {
			return State{}, fmt.Errorf("%w: %s: %w", ErrUnusable, part.name, err)
		}
		*part.to = p
	}
	for text, offset := range f.Positions {
		var p int32
		if _, err := fmt.Sscanf(text, "%d", &p); err != nil || offset < 0 {
			return State{}, fmt.Errorf("%w: position %q: %d", ErrUnusable, text, offset)
		}
		s.Positions[p] = offset
	}
	return s, nil
}
