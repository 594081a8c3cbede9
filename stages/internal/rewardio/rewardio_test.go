package rewardio

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/sluice-rl/sluice/stages/internal/mathverify"
	"github.com/sluice-rl/sluice/stages/internal/reward"
)

func decode(t *testing.T, out string) []map[string]any {
	t.Helper()
	var rows []map[string]any
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		var row map[string]any
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		rows = append(rows, row)
	}
	return rows
}

func TestCheckAnswersInOrder(t *testing.T) {
	in := `{"id":"a","gold":"\\frac12","pred":"\\boxed{0.5}"}

{"id":2,"gold":"1","pred":"2"}
not json
{"id":"c","gold":"1"}
{"id":"d","gold":"5","pred":")("}
{"id":"e","gold":"\\frac13","pred":"0.33","decimals":2}
`
	var out bytes.Buffer
	s, err := Check(strings.NewReader(in), &out, mathverify.Sound)
	if err != nil {
		t.Fatal(err)
	}
	rows := decode(t, out.String())
	if rows[0]["id"] != "a" || rows[0]["verdict"] != "equal" || rows[0]["method"] != "rational" || rows[0]["micros"] == nil || rows[0]["gold_read"] == "" {
		t.Errorf("row 0: %v", rows[0])
	}
	if rows[1]["id"] != 2.0 || rows[1]["verdict"] != "different" {
		t.Errorf("row 1: %v", rows[1])
	}
	for i, says := range map[int]string{2: "line 3: invalid character", 3: "line 4: gold or pred is missing"} {
		if msg, _ := rows[i]["error"].(string); !strings.Contains(msg, says) {
			t.Errorf("row %d: %v, want error %q", i, rows[i], says)
		}
	}
	if rows[4]["verdict"] != "undecided" || rows[5]["verdict"] != "equal" {
		t.Errorf("rows 4 and 5: %v, %v", rows[4], rows[5])
	}
	if want := (Summary{Lines: 6, Bad: 2, Equal: 2, Different: 1, Undecided: 1}); s != want {
		t.Errorf("got %+v, want %+v", s, want)
	}
}

func TestCheckRefusesAnUnknownProfile(t *testing.T) {
	if _, err := Check(strings.NewReader(""), &bytes.Buffer{}, "lax"); !errors.Is(err, mathverify.ErrOptions) {
		t.Errorf("got %v, want ErrOptions", err)
	}
}

func TestScoreLines(t *testing.T) {
	in := `{"id":"a","text":"so \\boxed{4}","reference":"4"}
{"id":"b","text":"so 4","reference":"4"}
{"id":"c","text":"\\boxed{4}","reference":"4","end_reason":"infra_error"}
{"id":"d"}
`
	set, err := reward.NewSet("outcome", reward.Scorer{Name: "zero_one", Version: "1", Logic: reward.ZeroOne()}, reward.Scorer{Name: "outcome", Version: "2", Logic: reward.Outcome()})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	s, err := ScoreLines(context.Background(), strings.NewReader(in), &out, set)
	if err != nil {
		t.Fatal(err)
	}
	rows := decode(t, out.String())
	if r := rows[0]; r["reward"] != 1.0 || r["correct"] != true || r["valid_format"] != true || r["answer"] != "4" || r["scorer"] != "outcome" || r["version"] != "2" {
		t.Errorf("row a: %v", r)
	}
	if o := rows[0]["others"].([]any)[0].(map[string]any); o["scorer"] != "zero_one" || o["reward"] != 1.0 {
		t.Errorf("others of row a: %v", o)
	}
	if r := rows[1]; r["reward"] != -1.0 || r["valid_format"] != false {
		t.Errorf("row b: %v", r)
	}
	if r := rows[2]; r["reward"] != nil || !strings.Contains(r["error"].(string), "not graded") {
		t.Errorf("row c: %v, want a null reward", r)
	}
	if r := rows[3]; !strings.Contains(r["error"].(string), "line 4") {
		t.Errorf("row d: %v", r)
	}
	if s.Lines != 4 || s.Bad != 1 || s.Ungraded != 1 || s.Equal != 1 {
		t.Errorf("summary %+v", s)
	}
}

func TestHostileTextIsEscaped(t *testing.T) {
	var out bytes.Buffer
	in := `{"id":"\u001b[2J","gold":"1","pred":"\u001b]0;x\u0007"}`
	if _, err := Check(strings.NewReader(in), &out, mathverify.Sound); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(strings.TrimRight(out.String(), "\n"), "\x1b\x07\n") {
		t.Errorf("control characters in the output: %q", out.String())
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestAWriterThatFailsIsAnError(t *testing.T) {
	if _, err := Check(strings.NewReader(`{"gold":"1","pred":"1"}`), broken{}, ""); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("got %v", err)
	}
}
