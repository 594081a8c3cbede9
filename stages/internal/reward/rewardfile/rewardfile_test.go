package rewardfile

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/sluice-rl/sluice/stages/internal/reward"
)

var deps = Deps{Client: http.DefaultClient, ReadFile: func(string) ([]byte, error) { return []byte("secret\n"), nil }}

const full = `
decides: thrifty
rewards:
  - name: outcome
    kind: outcome
  - name: strict
    kind: zero_one
    version: "3"
    box: {window: 100, choice: single, strictness: earlier}
    equivalence: {profile: compat, decimals: 4}
    read_invalid_calls: true
  - name: bonus
    kind: format_bonus
    bonus: 0.2
  - name: shaped
    kind: retool_shaped
  - name: thrifty
    kind: expression
    expression: |
      correct ? 1.0 - 0.25 * double(code_calls)
              : -1.0
  - name: judge
    kind: http
    url: http://127.0.0.1:1/score
    timeout: 2s
    attempts: 1
    batch: 8
    token_file: /run/secrets/judge
`

func TestEveryKindLoads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rewards.yaml")
	if err := os.WriteFile(path, []byte(full), 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := Load(path, deps)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range set.Scorers() {
		names = append(names, s.Name)
	}
	if diff := cmp.Diff([]string{"thrifty", "outcome", "strict", "bonus", "shaped", "judge"}, names); diff != "" {
		t.Errorf("scorers, the deciding one first (-want +got):\n%s", diff)
	}
	rules := set.Scorers()[2].Rules
	if rules.Box.Window != 100 || rules.Box.Choice != "single" || rules.Equivalence.Decimals != 4 || !rules.ReadInvalidCalls {
		t.Errorf("rules of strict: %+v", rules)
	}
	in := reward.Input{FinalText: `\boxed{5}`, Reference: "5", EndReason: "answer", CodeCalls: 2, Turns: 3}
	for i, want := range []float64{0.5, 1, 1, 1.2, 1} {
		if got := set.Score(context.Background(), in)[i]; got.Err != nil || got.Reward != want {
			t.Errorf("%s: got %v, %v; want %v", got.Scorer, got.Reward, got.Err, want)
		}
	}
}

func TestVersionsTellConfigurationsApart(t *testing.T) {
	version := func(yaml string) string {
		t.Helper()
		set, err := Parse([]byte("rewards:\n  - "+yaml), deps)
		if err != nil {
			t.Fatal(err)
		}
		return set.Scorers()[0].Version
	}
	if got := version("{name: a, kind: outcome}"); got != "1" {
		t.Errorf("a kind alone has version %q, want 1", got)
	}
	seen := map[string]string{}
	for _, y := range []string{
		"{name: a, kind: outcome}", "{name: a, kind: outcome, version: '2'}", "{name: a, kind: outcome, box: {window: 200}}",
		"{name: a, kind: outcome, equivalence: {profile: compat}}", "{name: a, kind: format_bonus, bonus: 0.1}", "{name: a, kind: format_bonus, bonus: 0.2}",
		"{name: a, kind: expression, expression: '1'}", "{name: a, kind: expression, expression: '2'}",
	} {
		v := version(y)
		if other, ok := seen[v]; ok {
			t.Errorf("%s and %s share the version %s", y, other, v)
		}
		seen[v] = y
	}
	if a, b := version("{name: a, kind: expression, expression: '1'}"), version("{name: b, kind: expression, expression: '1'}"); a != b {
		t.Errorf("the name changes the version: %s and %s", a, b)
	}
}

func TestWrongFilesAreRefusedWithTheLine(t *testing.T) {
	for name, tc := range map[string]struct{ yaml, says string }{
		"unknown top field":   {"decide: x\nrewards: []", "line 1"},
		"no rewards":          {"decides: x", "no rewards"},
		"an empty file":       {"", "no rewards"},
		"nothing but remarks": {"# later\n", "no rewards"},
		"unknown field":       {"rewards:\n  - name: a\n    kind: outcome\n    colour: red", `line 4: unknown field "colour"`},
		"field of other kind": {"rewards:\n  - name: a\n    kind: outcome\n    bonus: 1", `line 4: "bonus" belongs to kind format_bonus`},
		"unknown box field":   {"rewards:\n  - name: a\n    kind: outcome\n    box: {size: 3}", `line 4: unknown field "size" of box`},
		"unknown kind":        {"rewards:\n  - name: a\n    kind: magic", `line 3: unknown kind "magic"`},
		"no kind":             {"rewards:\n  - name: a", "line 2: kind is missing"},
		"no name":             {"rewards:\n  - kind: outcome", "line 2: name is missing"},
		"bad rules":           {"rewards:\n  - name: a\n    kind: outcome\n    box: {choice: best}", "choice"},
		"bad bonus":           {"rewards:\n  - name: a\n    kind: format_bonus\n    bonus: 5", "line 4: reward: bad parameter"},
		"several, none named": {"rewards:\n  - {name: a, kind: outcome}\n  - {name: b, kind: outcome}", "decides:"},
		"unknown decider":     {"decides: c\nrewards:\n  - {name: a, kind: outcome}", `"c" is to decide`},
		"plain expression":    {"rewards:\n  - name: a\n    kind: expression\n    expression: corect", "line 4, column 17: undeclared reference"},
		"quoted expression":   {"rewards:\n  - name: a\n    kind: expression\n    expression: 'corect ? 1 : 0'", "line 4, column 18: undeclared reference"},
		"block expression":    {"rewards:\n  - name: a\n    kind: expression\n    expression: |\n      correct ?\n      1 : nil", "line 2, column 5 of the expression: undeclared reference to 'nil' (line 6 of the file)"},
		"bad time-out":        {"rewards:\n  - name: a\n    kind: http\n    url: http://x\n    timeout: soon", "line 5: timeout"},
		"bad url":             {"rewards:\n  - name: a\n    kind: http\n    url: x", "line 4: remote reward"},
		"not a mapping":       {"rewards: [outcome]", "line 1: want an entry"},
	} {
		_, err := Parse([]byte(tc.yaml), deps)
		if !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: got %v, want %q", name, err, tc.says)
		}
	}
}

func TestATokenFileThatCannotBeReadIsAnError(t *testing.T) {
	missing := Deps{Client: http.DefaultClient, ReadFile: func(string) ([]byte, error) { return nil, os.ErrNotExist }}
	_, err := Parse([]byte("rewards:\n  - name: a\n    kind: http\n    url: http://x\n    token_file: /none"), missing)
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "line 5") {
		t.Errorf("got %v, want the line of token_file", err)
	}
}
