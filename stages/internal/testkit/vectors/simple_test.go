package vectors

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-rl/sluice/schemas"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/ppo-batcher/microbatch"
	"github.com/sluice-rl/sluice/stages/prompt-feeder/dataset"
	"github.com/sluice-rl/sluice/stages/reward-scorer/boxed"
	"github.com/sluice-rl/sluice/stages/sampler/observation"
	"github.com/sluice-rl/sluice/stages/sampler/rollout"
	"github.com/sluice-rl/sluice/stages/sampler/toolcall"
)

func checkBoxed(line []byte) error {
	row, err := decode[struct {
		Text   string
		Answer *string `json:"answer_window_300"`
	}](line)
	if err != nil {
		return err
	}
	got := boxed.Config{}.Find(row.Text)
	if got.Found != (row.Answer != nil) || got.Found && got.Answer != *row.Answer {
		return fmt.Errorf("found %t %q in %q, want %s", got.Found, got.Answer, row.Text, optional(row.Answer))
	}
	return nil
}

func optional(s *string) string {
	if s == nil {
		return "none"
	}
	return fmt.Sprintf("%q", *s)
}

func checkClosingOverlap(line []byte) error {
	row, err := decode[struct {
		Completion, Closing []uint32
		Overlap             int
	}](line)
	if err != nil {
		return err
	}
	if got := rollout.Overlap(row.Completion, row.Closing); got != row.Overlap {
		return fmt.Errorf("overlap of %v and %v is %d, want %d", row.Completion, row.Closing, got, row.Overlap)
	}
	return nil
}

func checkObservation(line []byte) error {
	row, err := decode[struct {
		Stdout, Stderr string
		ReturnCode     *int32
		TimedOut       bool    `json:"timed_out"`
		TimeoutS       float64 `json:"timeout_s"`
		Content        string
	}](line)
	if err != nil {
		return err
	}
	e := &sluicev1.Execution{TimeoutMs: uint32(row.TimeoutS * 1000)}
	e.Stdout, e.StdoutTruncated = observation.ClipStream([]byte(row.Stdout), 0)
	e.Stderr, e.StderrTruncated = observation.ClipStream([]byte(row.Stderr), 0)
	switch {
	case row.TimedOut:
		e.Outcome = sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_TIMEOUT
	case row.ReturnCode != nil && *row.ReturnCode == 0:
		e.Outcome = sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_OK
	case row.ReturnCode != nil:
		e.Outcome, e.ExitCode = sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_ERROR, *row.ReturnCode
	default:
		return fmt.Errorf("neither timed out nor with a return code: no outcome to compare")
	}
	defuser, err := observation.NewDefuser(observation.Qwen())
	if err != nil {
		return err
	}
	if got := defuser.Defuse(observation.Text(e, observation.Message)); got != row.Content {
		return fmt.Errorf("observation %.200q, want %.200q", got, row.Content)
	}
	return nil
}

func checkPacking(line []byte) error {
	row, err := decode[struct {
		Lengths      []int
		MicroBatches [][]int `json:"micro_batches"`
		MaxItems     int     `json:"max_items"`
		MaxTokens    int     `json:"max_padded_tokens"`
	}](line)
	if err != nil {
		return err
	}
	got, err := microbatch.Limits{Data: row.MaxItems, PaddedTokens: row.MaxTokens}.Pack(row.Lengths)
	if err != nil {
		return err
	}
	if !slices.EqualFunc(got, row.MicroBatches, slices.Equal[[]int]) {
		return fmt.Errorf("packed as %v, want %v", got, row.MicroBatches)
	}
	return nil
}

func checkParse(line []byte) error {
	row, err := decode[struct {
		Text, Kind, Content string
		Code                *string
	}](line)
	if err != nil {
		return err
	}
	got := toolcall.Qwen{}.Parse(row.Text)
	kind := schemas.EnumText(got.Kind)
	code := &got.Code
	if got.Kind != sluicev1.TurnKind_TURN_KIND_TOOL {
		code = nil
	}
	if kind != row.Kind || got.Content != row.Content || optional(code) != optional(row.Code) {
		return fmt.Errorf("%q is %s with content %q, code %s; want %s, %q, %s",
			row.Text, kind, got.Content, optional(code), row.Kind, row.Content, optional(row.Code))
	}
	return nil
}

func checkPrepare(line []byte) error {
	var row struct {
		Index      int
		Row        dataset.Object
		Normalised *dataset.Row `json:"normalized"`
	}
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.UseNumber()
	if err := dec.Decode(&row); err != nil {
		return err
	}
	got, err := dataset.Layout{DataSource: "dapo_math"}.Normalise(row.Row, row.Index)
	agrees := err != nil && row.Normalised == nil || err == nil && row.Normalised != nil && got == *row.Normalised
	switch {
	case agrees:
		return nil
	case err == nil && holdsZero(row.Row, got):
		return fmt.Errorf("%w: an answer or index of 0 is a value", errOnPurpose)
	case row.Normalised == nil:
		return fmt.Errorf("read as %+v, want a refusal", got)
	}
	return fmt.Errorf("read as %+v (error: %w), want %+v", got, err, *row.Normalised)
}

// holdsZero says whether a row's answer or index is the number 0, which the recipe
// takes for a missing one and Sluice does not.
func holdsZero(row dataset.Object, got dataset.Row) bool {
	nested := func(outer, inner string) any {
		m, _ := row[outer].(map[string]any)
		if list, ok := m[inner].([]any); ok && len(list) > 0 {
			return list[0]
		}
		return m[inner]
	}
	zero := func(v any) bool {
		n, ok := v.(json.Number)
		return ok && strings.Trim(n.String(), "-0.") == ""
	}
	return zero(nested("reward_model", "ground_truth")) && strings.Trim(got.Answer, "-0.") == "" ||
		zero(nested("extra_info", "index")) && strings.Trim(got.ID, "-0.") == ""
}

func checkPythonShuffle(line []byte) error {
	row, err := decode[struct {
		N           int
		Seed        uint64
		First, Last []int
		SHA256      string `json:"sha256_of_json"`
	}](line)
	if err != nil {
		return err
	}
	got := dataset.PythonShuffle(row.N, row.Seed)
	// As Python's json.dumps writes a list.
	text := strings.ReplaceAll(strings.ReplaceAll(fmt.Sprint(got), " ", ", "), "\n", "")
	sum := sha256.Sum256([]byte(text))
	switch {
	case len(got) < len(row.First) || !slices.Equal(got[:len(row.First)], row.First):
		return fmt.Errorf("n %d, seed %d: begins with %v, want %v", row.N, row.Seed, got[:min(len(got), len(row.First))], row.First)
	case len(got) < len(row.Last) || !slices.Equal(got[len(got)-len(row.Last):], row.Last):
		return fmt.Errorf("n %d, seed %d: does not end with %v", row.N, row.Seed, row.Last)
	case hex.EncodeToString(sum[:]) != row.SHA256:
		return fmt.Errorf("n %d, seed %d: SHA-256 is %x, want %s", row.N, row.Seed, sum, row.SHA256)
	}
	return nil
}
