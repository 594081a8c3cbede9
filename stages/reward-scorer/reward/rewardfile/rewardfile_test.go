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
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/reward-scorer/reward"
)

var deps = Deps{Transport: http.DefaultTransport, ReadFile: func(string) ([]byte, error) { return []byte("secret\n"), nil }}

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
	in := reward.Input{FinalText: `\boxed{5}`, Reference: "5", EndReason: sluicev1.EndReason_END_REASON_ANSWER, CodeCalls: 2, Turns: 3}
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
	// Scores are recorded under it: it must not change from one release to the next.
	const rich = "{name: a, kind: http, url: 'http://x', batch: 8, timeout: 2s, token_file: /t, box: {window: 200}, equivalence: {decimals: 4}, version: v}"
	if got := version(rich); got != "v-8f454a11" {
		t.Errorf("version %s, want v-8f454a11", got)
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
	const one, http = "rewards:\n  - name: a\n    kind: outcome\n", "rewards:\n  - name: a\n    kind: http\n"
	for name, tc := range map[string]struct{ yaml, says string }{
		"unknown top field":   {"decide: x\nrewards: []", `line 1: unknown field "decide"; want decides, rewards`},
		"no rewards":          {"# mine\ndecides: x", "line 2: no rewards"},
		"an empty list":       {"decides: x\nrewards: []", "line 2: no rewards"},
		"an empty file":       {"", "line 1: no rewards"},
		"nothing but remarks": {"# later\n", "line 1: no rewards"},
		"nothing but a mark":  {"---\n", "line 1: no rewards"},
		"too many rewards":    {"rewards:\n" + strings.Repeat("- {name: a, kind: outcome}\n", 33), "line 34: 33 rewards"},
		"unknown field":       {one + "    colour: red", `line 4: unknown field "colour"`},
		"field of other kind": {one + "    bonus: 1", `line 4: "bonus" belongs to kind format_bonus`},
		"unknown box field":   {one + "    box: {size: 3}", `line 4: unknown field "size" of box; want choice, strictness, thought, window`},
		"unknown kind":        {"rewards:\n  - name: a\n    kind: magic", `line 3: unknown kind "magic"`},
		"no kind":             {"rewards:\n  - name: a", "line 2: kind is missing"},
		"no name":             {"rewards:\n  - kind: outcome", "line 2: name is missing"},
		"an empty name":       {"rewards:\n  - kind: outcome\n    name: ''", "line 3: name is missing"},
		"bad box":             {one + "    box: {choice: best}", "line 4: boxed"},
		"bad equivalence":     {one + "    box: {window: 100}\n    equivalence:\n      profile: lax", "line 6: mathverify"},
		"bad bonus":           {"rewards:\n  - name: a\n    kind: format_bonus\n    bonus: 5", "line 4: reward: bad parameter"},
		"bad per_turn":        {"rewards:\n  - name: a\n    kind: retool_shaped\n    per_turn: 5\n    limit: 0", "line 4: reward: bad parameter: per_turn"},
		"bad limit":           {"rewards:\n  - name: a\n    kind: retool_shaped\n    per_turn: 1\n    limit: 3", "line 5: reward: bad parameter: limit"},
		"several, none named": {"rewards:\n  - {name: a, kind: outcome}\n  - {name: b, kind: outcome}", "line 1: several rewards; decides:"},
		"unknown decider":     {"rewards:\n  - {name: a, kind: outcome}\ndecides: c", `line 3: reward: bad set of scorers: "c" is to decide`},
		"decides nothing":     {"decides:\n" + one, "line 1: decides has no value, want a text"},
		"decides an empty":    {"decides: ''\n" + one, `line 1: reward: bad set of scorers: "" is to decide`},
		"one name twice":      {"decides: a\n" + one + "  - kind: zero_one\n    name: a", `line 6: the reward on line 3 is named "a" too`},
		"one key twice":       {one + "    kind: zero_one", "line 4: kind is given on line 3 already"},
		"rewards twice":       {one + one, "line 4: rewards is given on line 1 already"},
		"box key twice":       {one + "    box: {window: 5,\n      window: 6}", "line 5: window of box is given on line 4 already"},
		"plain expression":    {"rewards:\n  - name: a\n    kind: expression\n    expression: corect", "line 4, column 17: undeclared reference"},
		"quoted expression":   {"rewards:\n  - name: a\n    kind: expression\n    expression: 'corect ? 1 : 0'", "line 4, column 18: undeclared reference"},
		"block expression":    {"rewards:\n  - name: a\n    kind: expression\n    expression: |\n      correct ?\n      1 : nil", "line 2, column 5 of the expression: undeclared reference to 'nil' (line 6 of the file)"},
		"negative cost limit": {"rewards:\n  - name: a\n    kind: expression\n    expression: '1'\n    cost_limit: -1", `line 5: cost_limit is "-1", want a whole number, 0 or more`},
		"bad time-out":        {http + "    url: http://x\n    timeout: soon", `line 5: timeout is "soon"; want a duration`},
		"time-out too long":   {http + "    timeout: 1h\n    url: http://x", "line 4: remote reward"},
		"too many attempts":   {http + "    url: http://x\n    attempts: 99", "line 5: remote reward"},
		"batch too large":     {http + "    url: http://x\n    attempts: 3\n    batch: 9999", "line 6: remote reward"},
		"bad url":             {http + "    url: x", "line 4: remote reward"},
		"no url":              {http, "line 2: remote reward"},
		"entry is a text":     {"rewards: [outcome]", "line 1: want an entry"},
		"file is a list":      {"# mine\n- name: a", "line 2: the file is a list, want the keys decides and rewards"},
		"file is a text":      {"outcome", `line 1: the file is "outcome", want the keys`},
		"rewards a mapping":   {"decides: a\nrewards: {name: a}", "line 2: rewards is a mapping, want a list"},
		"decides a list":      {"rewards: []\ndecides: [a]", "line 2: decides is a list, want a text"},
		"name a mapping":      {"rewards:\n  - name: {a: b}", "line 2: name is a mapping, want a text"},
		"text for number":     {"rewards:\n  - name: a\n    kind: format_bonus\n    bonus: high", `line 4: bonus is "high", want a number`},
		"number missing":      {"rewards:\n  - name: a\n    kind: format_bonus\n    bonus:", "line 4: bonus has no value, want a number"},
		"fraction for whole":  {http + "    batch: 1.5", `line 4: batch is "1.5", want a whole number`},
		"text for bool":       {one + "    read_invalid_calls: maybe", `line 4: read_invalid_calls is "maybe", want true or false`},
		"number for box":      {one + "    box: 3", `line 4: box is "3", want a mapping`},
		"box without value":   {one + "    box:", "line 4: box has no value, want a mapping"},
		"text for window":     {one + "    box:\n      choice: last\n      window: all", `line 6: window of box is "all", want a whole number`},
		"alias of an unfit":   {one + "    box: &b {window: 3}\n    equivalence: *b", `line 4: unknown field "window" of equivalence`},
		"a second document":   {one + "---\n" + one, "line 4: a second document"},
		"an empty second one": {one + "---\n", "line 4: a second document"},
		"a broken second one": {one + "---\na: b: c", "line 5: mapping values are not allowed"},
		"unquoted CEL":        {"rewards:\n  - name: a\n    kind: expression\n    expression: correct ? 1.0 : -1.0", `line 4: mapping values are not allowed in this context (quote the expression, or write it below "expression: |"`},
		"CEL over two lines":  {"rewards:\n  - name: a\n    kind: expression\n    expression: correct\n      ? 1.0 : -1.0", "(quote the expression"},
		"CEL in braces":       {"rewards:\n  - name: a\n    kind: expression\n    expression: {1: 2}[1]", "(quote the expression"},
		"CEL that is a list":  {"rewards:\n  - name: a\n    kind: expression\n    expression: [1]", "expression is a list, want a text (quote the expression"},
		"bad thought":         {one + "    box: {thought: maybe}", `line 4: boxed: bad configuration: thought is "maybe"`},
		"broken first line":   {"rewards: a: b", "line 1: mapping values are not allowed"},
		"broken later":        {one + "    box: a: b", "line 4: mapping values are not allowed"},
		"list below a key":    {"decides: a\n- b", "line 2: did not find expected key"},
		"open list":           {"decides: a\nrewards: [1,\nx: y: z", "line 3: did not find expected ',' or ']'"},
		"open to the end":     {"decides: a\nrewards: [", "line 2: did not find expected node content"},
		"unknown anchor":      {one + "    box: *b\n    version: 2", "line 4: unknown anchor 'b'"},
		"control character":   {one + "    version: \x01\n    box: {}", "line 4: control characters are not allowed"},
		"not UTF-8":           {"decides: a # \xff\n" + one, "line 1: invalid leading UTF-8 octet"},
	} {
		_, err := Parse([]byte(tc.yaml), deps)
		if !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), "line ") {
			t.Errorf("%s: got %v, want %q", name, err, tc.says)
			continue
		}
		for _, foreign := range []string{"rewardfile.", "unmarshal", "!!", "float64", "uint64", "yaml:"} {
			if strings.Contains(err.Error(), foreign) {
				t.Errorf("%s: %q of the program is in %v", name, foreign, err)
			}
		}
	}
}

// A file may end its document, and use an anchor.
func TestWhatLooksWrongButIsNot(t *testing.T) {
	for _, y := range []string{
		"---\nrewards:\n  - {name: a, kind: outcome}\n...\n",
		"decides: b\nrewards:\n  - {name: a, kind: outcome, box: &b {window: 50}}\n  - {name: b, kind: zero_one, box: *b}\n",
		"rewards:\n  - {name: 7, kind: outcome, version: 2, read_invalid_calls: false}\n",
	} {
		set, err := Parse([]byte(y), deps)
		if err != nil {
			t.Errorf("%s: %v", y, err)
		} else if d := set.Scorers()[0]; d.Name == "b" && d.Rules.Box.Window != 50 {
			t.Errorf("%s: an anchored box is %+v", y, d.Rules.Box)
		}
	}
}

func TestTheURLIsNotToldEvenWhereItIsWrong(t *testing.T) {
	for _, u := range []string{"http://x:p/s3cret@h", "user:s3cret@host/x", "ftp://x?key=s3cret", "http://u:s3cret@host", `"http://x?key=s3cret\x7f"`, `"http://h/%zz?s3cret"`} {
		_, err := Parse([]byte("rewards:\n  - name: a\n    kind: http\n    url: "+u), deps)
		if err == nil || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), "line 4: remote reward") {
			t.Errorf("%s: got %v", u, err)
		}
	}
}

func TestATokenFileThatCannotBeReadIsAnError(t *testing.T) {
	missing := Deps{Transport: http.DefaultTransport, ReadFile: func(string) ([]byte, error) { return nil, os.ErrNotExist }}
	_, err := Parse([]byte("rewards:\n  - name: a\n    kind: http\n    url: http://x\n    token_file: /none"), missing)
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "line 5") {
		t.Errorf("got %v, want the line of token_file", err)
	}
}
