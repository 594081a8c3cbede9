package schemas_test

import (
	"strings"
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

func TestParseEnum(t *testing.T) {
	for _, text := range []string{"token_budget", "Token_Budget", "END_REASON_TOKEN_BUDGET", "end_reason_token_budget"} {
		if got, err := schemas.ParseEnum[sluicev1.EndReason](text); err != nil || got != sluicev1.EndReason_END_REASON_TOKEN_BUDGET {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "tired", "unspecified", "END_REASON_UNSPECIFIED", "1"} {
		if got, err := schemas.ParseEnum[sluicev1.EndReason](text); err == nil || !strings.Contains(err.Error(), "answer, invalid_tool_call") {
			t.Errorf("%q: %v, %v; want an error that names what there is", text, got, err)
		}
	}
}
