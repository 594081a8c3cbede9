package schemas_test

import (
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/sluice-rl/sluice/schemas"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

func TestEnumText(t *testing.T) {
	for want, e := range map[string]protoreflect.Enum{
		"token_budget":     sluicev1.EndReason_END_REASON_TOKEN_BUDGET,
		"out_of_memory":    sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_OUT_OF_MEMORY,
		"train":            sluicev1.Mode_MODE_TRAIN,
		"no_policy_tokens": sluicev1.BatchFate_BATCH_FATE_NO_POLICY_TOKENS,
		"":                 sluicev1.TurnKind_TURN_KIND_UNSPECIFIED,
		"unknown":          sluicev1.Closing(99),
	} {
		if got := schemas.EnumText(e); got != want {
			t.Errorf("EnumText(%v) = %q, want %q", e, got, want)
		}
	}
}
