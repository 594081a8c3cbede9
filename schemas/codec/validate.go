package codec

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"

	"github.com/sluice-rl/sluice/schemas/custody"
	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
)

// MaxGroupSize bounds what one record can ask for.
const MaxGroupSize = 4096

// Validate refuses a message that breaks the contracts. Errors wrap ErrInvalid and
// name the field and what was found.
func Validate(m proto.Message) error {
	var err error
	switch m := m.(type) {
	case *sluicev1.Prompt:
		err = checkPrompt(m)
	case *sluicev1.CodeCall:
		err = checkCall(m.GetTrajectory(), m.GetCallId())
	case *sluicev1.CodeResult:
		if err = checkCall(m.GetTrajectory(), m.GetCallId()); err == nil && m.GetExecution().GetOutcome() == 0 {
			err = fmt.Errorf("execution.outcome is missing")
		}
	case *sluicev1.Trajectory:
		if err = checkTrajectory(m); err == nil && m.GetEndReason() == 0 {
			err = fmt.Errorf("end_reason is missing: only ended trajectories stand here")
		}
	case *sluicev1.Scored:
		err = checkScored(m)
	case *sluicev1.GroupMember:
		err = checkScored(m.GetScored())
	case *sluicev1.GroupClosed:
		err = checkGroupClosed(m)
	case *sluicev1.StepBatch:
		err = checkStepBatch(m)
	case *sluicev1.MicroBatch:
		err = checkMicroBatch(m)
	case *sluicev1.PolicyUpdate:
		err = checkStep(m)
	case *sluicev1.TrainerReport:
		err = checkStep(m)
	case *sluicev1.TrainerAnnotation:
		err = checkAnnotation(m)
	case *sluicev1.DeadLetter:
		if m.GetStage() == "" || m.GetErrorType() == "" {
			err = fmt.Errorf("stage or error_type is missing")
		}
	case *sluicev1.Run:
		err = checkRun(m)
	case *sluicev1.RunFed:
		err = checkStep(m)
	case *sluicev1.RunStop:
		if err = identity.CheckRunID(m.GetRunId()); err == nil && m.GetReason() == "" {
			err = fmt.Errorf("reason is empty: say why the run stops")
		}
	case *sluicev1.CloseRequest:
		if err = checkStep(m); err == nil && m.GetReason() == "" {
			err = fmt.Errorf("reason is empty: say why it is closed by hand")
		}
	case *sluicev1.StageStatus:
		if m.GetStage() == "" || m.GetInstance() == "" || m.GetIntervalMs() == 0 {
			err = fmt.Errorf("stage, instance or interval_ms is missing")
		}
	default:
		err = fmt.Errorf("%s is no record type", TypeName(m))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return nil
}

func checkGroup(g *sluicev1.GroupPlace) error { return identity.GroupOf(g).Check() }

// checkStub is what even a trajectory given up without its content must have.
func checkStub(p *sluicev1.Prompt) error {
	if err := checkGroup(p.GetGroup()); err != nil {
		return fmt.Errorf("group: %w", err)
	}
	if p.GetProblem().GetQuestionId() == "" {
		return fmt.Errorf("problem.question_id is empty")
	}
	if n := p.GetGroupSize(); n < 1 || n > MaxGroupSize {
		return fmt.Errorf("group_size is %d, want 1 to %d", n, MaxGroupSize)
	}
	if slot, n := p.GetGroup().GetSlot(), p.GetGroupsInStep(); slot >= n {
		return fmt.Errorf("slot is %d of groups_in_step %d: slots count from 0", slot, n)
	}
	if p.GetMode() == 0 {
		return fmt.Errorf("mode is missing")
	}
	return nil
}

func checkPrompt(p *sluicev1.Prompt) error {
	if err := checkStub(p); err != nil {
		return err
	}
	if p.GetProblem().GetQuestion() == "" {
		return fmt.Errorf("problem.question is empty (question id %q)", p.GetProblem().GetQuestionId())
	}
	if p.GetProblem().GetAnswer() == "" {
		return fmt.Errorf("problem.answer is empty: question id %q has no reference to grade against", p.GetProblem().GetQuestionId())
	}
	if err := checkBudgets(p.GetBudgets()); err != nil {
		return err
	}
	if t := p.GetSampling().GetTemperature(); !(t >= 0) || math.IsInf(t, 0) {
		return fmt.Errorf("sampling.temperature is %v, want a number from 0", t)
	}
	if q := p.GetSampling().GetTopP(); !(q > 0 && q <= 1) {
		return fmt.Errorf("sampling.top_p is %v, want above 0 and at most 1", q)
	}
	if p.GetToolEnabled() && p.GetToolProtocol() == "" {
		return fmt.Errorf("tool_protocol is empty though the tool is on")
	}
	for _, i := range p.GetSampleIndices() {
		if i >= p.GetGroupSize() {
			return fmt.Errorf("sample index %d of group size %d", i, p.GetGroupSize())
		}
	}
	return nil
}

func checkBudgets(b *sluicev1.Budgets) error {
	for _, f := range []struct {
		name  string
		value uint32
	}{
		{"code_calls", b.GetCodeCalls()},
		{"turns", b.GetTurns()},
		{"trajectory_tokens", b.GetTrajectoryTokens()},
		{"turn_tokens", b.GetTurnTokens()},
		{"observation_tokens", b.GetObservationTokens()},
		{"execution_timeout_ms", b.GetExecutionTimeoutMs()},
	} {
		if f.value == 0 {
			return fmt.Errorf("budgets.%s is 0, want above 0", f.name)
		}
	}
	return nil
}

func checkTrajectory(t *sluicev1.Trajectory) error {
	if err := checkStub(t.GetPrompt()); err != nil {
		return fmt.Errorf("prompt: %w", err)
	}
	if i, n := t.GetSampleIndex(), t.GetPrompt().GetGroupSize(); i >= n {
		return fmt.Errorf("sample_index is %d of group size %d", i, n)
	}
	if t.GetCopy() == 0 {
		return fmt.Errorf("copy is 0: it must be drawn at the first turn")
	}
	if err := checkWhole("prompt_tokens", t.GetPromptTokens()); err != nil {
		return err
	}
	for i, turn := range t.GetTurns() {
		if err := checkTurn(turn); err != nil {
			return fmt.Errorf("%s turn %d: %w", identity.PlaceOf(t), i, err)
		}
	}
	return nil
}

func checkTurn(turn *sluicev1.Turn) error {
	for _, a := range []struct {
		name  string
		array []byte
	}{{"tokens", turn.GetTokens()}, {"logprobs", turn.GetLogprobs()}, {"glue_tokens", turn.GetGlueTokens()}} {
		if err := checkWhole(a.name, a.array); err != nil {
			return err
		}
	}
	n, l, v := tokens.Count(turn.GetTokens()), tokens.Count(turn.GetLogprobs()), tokens.CountVersions(turn.GetVersions())
	if n != l || n != v {
		return fmt.Errorf("%d tokens, %d logprobs, versions of %d: must be equal", n, l, v)
	}
	for i, s := range turn.GetVersions() {
		if s.GetCount() == 0 {
			return fmt.Errorf("versions[%d].count is 0, want at least 1", i)
		}
		if i > 0 && s.GetVersion() == turn.GetVersions()[i-1].GetVersion() {
			return fmt.Errorf("versions[%d].version is %d as in the span before: they are one", i, s.GetVersion())
		}
	}
	if n := len(turn.GetDigest()); n != 0 && n != custody.Size {
		return fmt.Errorf("digest has %d bytes, want %d", n, custody.Size)
	}
	return checkFinite("logprobs", turn.GetLogprobs())
}

// checkWhole refuses an array of ids or floats that ends within a value.
func checkWhole(name string, array []byte) error {
	if len(array)%tokens.Size != 0 {
		return fmt.Errorf("%s has %d bytes, want %d for each value", name, len(array), tokens.Size)
	}
	return nil
}

func checkFinite(name string, array []byte) error {
	if i := tokens.NotFinite(array); i >= 0 {
		return fmt.Errorf("%s[%d] is %v, want a finite number", name, i, tokens.Float(array, i))
	}
	return nil
}

func checkCall(t *sluicev1.Trajectory, callID string) error {
	if err := checkTrajectory(t); err != nil {
		return fmt.Errorf("trajectory: %w", err)
	}
	if callID == "" {
		return fmt.Errorf("call_id is empty")
	}
	turns := t.GetTurns()
	if len(turns) == 0 || turns[len(turns)-1].GetKind() != sluicev1.TurnKind_TURN_KIND_TOOL || turns[len(turns)-1].GetCode() == "" {
		return fmt.Errorf("call %s: the last turn holds no code", callID)
	}
	if t.GetPrompt().GetBudgets().GetExecutionTimeoutMs() == 0 {
		return fmt.Errorf("call %s: budgets.execution_timeout_ms is 0", callID)
	}
	return nil
}

func checkScored(s *sluicev1.Scored) error {
	if err := checkTrajectory(s.GetTrajectory()); err != nil {
		return fmt.Errorf("trajectory: %w", err)
	}
	return checkScore(s)
}

// checkScore checks all but the trajectory.
func checkScore(s *sluicev1.Scored) error {
	if !s.GetGraded() {
		if s.GetUngradedReason() == "" {
			return fmt.Errorf("ungraded_reason is empty though graded is false")
		}
		if s.GetReward() != 0 || s.GetCorrect() {
			return fmt.Errorf("an ungraded trajectory bears reward %v, correct %t", s.GetReward(), s.GetCorrect())
		}
		return nil
	}
	if math.IsNaN(s.GetReward()) || math.IsInf(s.GetReward(), 0) {
		return fmt.Errorf("reward is %v, want a finite number", s.GetReward())
	}
	if len(s.GetScores()) == 0 {
		return fmt.Errorf("scores is empty though graded is true")
	}
	return nil
}

func checkGroupClosed(g *sluicev1.GroupClosed) error {
	if err := checkGroup(g.GetGroup()); err != nil {
		return fmt.Errorf("group: %w", err)
	}
	if g.GetClosing() == 0 || g.GetMode() == 0 {
		return fmt.Errorf("closing or mode is missing")
	}
	if n, m := g.GetGroupSize(), len(g.GetMembers()); uint32(m) != n {
		return fmt.Errorf("%d members of group size %d: one for each sample index", m, n)
	}
	for i, m := range g.GetMembers() {
		if m.GetSampleIndex() != uint32(i) {
			return fmt.Errorf("members[%d].sample_index is %d: they stand in order", i, m.GetSampleIndex())
		}
		if m.GetFate() == 0 {
			return fmt.Errorf("members[%d].fate is missing", i)
		}
		if s := m.GetAdvantage() + m.GetReward(); math.IsNaN(s) || math.IsInf(s, 0) {
			return fmt.Errorf("members[%d]: reward %v, advantage %v: want finite numbers", i, m.GetReward(), m.GetAdvantage())
		}
	}
	if slot, n := g.GetGroup().GetSlot(), g.GetGroupsInStep(); slot >= n {
		return fmt.Errorf("slot is %d of groups_in_step %d", slot, n)
	}
	return nil
}

// checkStep checks what all messages about a whole step have in common.
func checkStep(m interface {
	GetRunId() string
	GetIncarnation() uint32
	GetStep() uint64
}) error {
	return identity.Group{RunID: m.GetRunId(), Incarnation: m.GetIncarnation(), Step: m.GetStep()}.Check()
}

func checkRun(r *sluicev1.Run) error {
	if err := identity.CheckRunID(r.GetRunId()); err != nil {
		return err
	}
	if r.GetDataSha256() == "" || r.GetRows() == 0 || r.GetMode() == 0 {
		return fmt.Errorf("data_sha256, rows or mode is missing")
	}
	if n := r.GetGroupSize(); n < 1 || n > MaxGroupSize {
		return fmt.Errorf("group_size is %d, want 1 to %d", n, MaxGroupSize)
	}
	if r.GetProblemsPerStep() == 0 {
		return fmt.Errorf("problems_per_step is 0")
	}
	return checkBudgets(r.GetBudgets())
}

func checkStepBatch(b *sluicev1.StepBatch) error {
	if err := checkStep(b); err != nil {
		return err
	}
	if !(b.GetClipLow() > 0 && b.GetClipLow() <= 1 && b.GetClipHigh() >= 1) {
		return fmt.Errorf("clip_low %v, clip_high %v: want 0 < low <= 1 <= high", b.GetClipLow(), b.GetClipHigh())
	}
	if b.GetTokenReduction() == 0 {
		return fmt.Errorf("token_reduction is missing")
	}
	if b.GetMicroBatches() > 0 && b.GetN() == 0 {
		return fmt.Errorf("n is 0 though there are %d micro-batches", b.GetMicroBatches())
	}
	return nil
}

func checkAnnotation(a *sluicev1.TrainerAnnotation) error {
	if err := checkStep(a); err != nil {
		return err
	}
	lp, behaviour, entropy := a.GetLogprobs(), a.GetBehaviourLogprobs(), a.GetEntropy()
	if n := len(lp); n == 0 || n%tokens.Size != 0 || len(behaviour) != n || (len(entropy) != n && len(entropy) != 0) {
		return fmt.Errorf("%d bytes of logprobs, %d of behaviour_logprobs, %d of entropy: want equally many values of %d bytes, and above 0; of entropy also none",
			len(lp), len(behaviour), len(entropy), tokens.Size)
	}
	for _, f := range []struct {
		name   string
		values []byte
	}{{"logprobs", lp}, {"behaviour_logprobs", behaviour}, {"entropy", entropy}} {
		if err := checkFinite(f.name, f.values); err != nil {
			return err
		}
	}
	return nil
}

func checkMicroBatch(b *sluicev1.MicroBatch) error {
	if err := checkStep(b); err != nil {
		return err
	}
	if len(b.GetData()) == 0 {
		return fmt.Errorf("data is empty")
	}
	if b.GetTokenReduction() == 0 {
		return fmt.Errorf("token_reduction is missing")
	}
	for i, d := range b.GetData() {
		if err := checkDatum(d); err != nil {
			return fmt.Errorf("data[%d] (slot %d, sample index %d): %w", i, d.GetSlot(), d.GetSampleIndex(), err)
		}
	}
	return nil
}

func checkDatum(d *sluicev1.Datum) error {
	in, target, lp, adv := d.GetInputTokens(), d.GetTargetTokens(), d.GetBehaviourLogprobs(), d.GetAdvantages()
	mask := d.GetLossMask()
	if n := tokens.Size * len(mask); n == 0 || len(in) != n || len(target) != n || len(lp) != n || len(adv) != n {
		return fmt.Errorf("%d bytes of input_tokens, %d of target_tokens, %d of behaviour_logprobs, %d of advantages, %d of loss_mask: want equally many values, %d bytes each and 1 of the mask, and above 0",
			len(in), len(target), len(lp), len(adv), len(mask), tokens.Size)
	}
	trained := false
	for i, m := range mask {
		switch m {
		case 1:
			trained = true
		case 0:
			if l, a := tokens.Float(lp, i), tokens.Float(adv, i); l != 0 || a != 0 {
				return fmt.Errorf("token %d is masked but has logprob %v, advantage %v: want 0", i, l, a)
			}
		default:
			return fmt.Errorf("loss_mask[%d] is %d, want 0 or 1", i, m)
		}
	}
	if !trained {
		return fmt.Errorf("no token is trained on: loss_mask is all 0")
	}
	if err := checkFinite("behaviour_logprobs", lp); err != nil {
		return err
	}
	return checkFinite("advantages", adv)
}
