package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/sluice-rl/sluice/stages/reward-scorer/jsonlines"
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify"
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

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestCheckAnswersInOrder(t *testing.T) {
	in := `{"id":"a","gold":"\\frac12","pred":"\\boxed{0.5}"}

{"id":2,"gold":"1","pred":"2"}
not json
{"id":"c","gold":"1"}
{"id":"d","gold":"5","pred":")("}
{"id":"e","gold":"\\frac13","pred":"0.33","decimals":2}
`
	var out bytes.Buffer
	s, err := Lines(strings.NewReader(in), &out, mathverify.Options{})
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
	for i, says := range map[int]string{2: "line 4: invalid character", 3: "line 5: gold or pred is missing"} {
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
	if _, err := Lines(strings.NewReader(""), &bytes.Buffer{}, mathverify.Options{Profile: "lax"}); !errors.Is(err, mathverify.ErrOptions) {
		t.Errorf("got %v, want ErrOptions", err)
	}
}

func TestHostileTextIsEscaped(t *testing.T) {
	var out bytes.Buffer
	in := `{"id":"\u001b[2J","gold":"1","pred":"\u001b]0;x\u0007"}`
	if _, err := Lines(strings.NewReader(in), &out, mathverify.Options{}); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(strings.TrimRight(out.String(), "\n"), "\x1b\x07\n") {
		t.Errorf("control characters in the output: %q", out.String())
	}
}

func TestAWriterThatFailsIsAnError(t *testing.T) {
	if _, err := Lines(strings.NewReader(`{"gold":"1","pred":"1"}`), broken{}, mathverify.Options{}); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("got %v", err)
	}
}

// Whatever a line is, it is answered in its place, and the next one too.
func TestLinesThatAreNoPairs(t *testing.T) {
	good := `{"id":"good","gold":"1/2","pred":"0.5"}`
	for name, c := range map[string]struct{ line, says string }{
		"no UTF-8":        {"{\"id\":1,\"gold\":\"\xff\",\"pred\":\"\xfe\"}", "not UTF-8"},
		"half a pair":     {`{"id":1,"gold":"\ud800","pred":"\ud801"}`, "half a pair"},
		"another kind":    {`{"id":1,"gold":true,"pred":"5"}`, "gold: want a string, a number or a list of them"},
		"no references":   {`{"id":1,"gold":[],"pred":"5"}`, "gold: want a string"},
		"a list of lists": {`{"id":1,"gold":[["5"]],"pred":"5"}`, "gold: want a string"},
		"kind of options": {`{"id":1,"gold":"5","pred":"5","decimals":"x"}`, "decimals is a JSON string, want a number"},
		"no object":       {`["1","2"]`, "a JSON array, want an object"},
		"null":            {`null`, "gold or pred is missing"},
		"a null text":     {`{"id":1,"gold":"5","pred":null}`, "gold or pred is missing"},
		"two objects":     {good + good, "after top-level value"},
		"cut":             {good[:20], "unexpected end"},
		"NUL":             {"\x00", "invalid character"},
		"too long":        {`{"id":1,"gold":"` + strings.Repeat("9", jsonlines.MaxLine) + `","pred":"1"}`, "longer than"},
	} {
		var out bytes.Buffer
		sum, err := Lines(strings.NewReader(good+"\r\n"+c.line+"\n\n"+good), &out, mathverify.Options{})
		if err != nil || sum != (Summary{Lines: 3, Bad: 1, Equal: 2}) {
			t.Fatalf("%s: %+v, %v", name, sum, err)
		}
		rows := decode(t, out.String())
		if len(rows) != 3 || rows[0]["verdict"] != "equal" || rows[2]["verdict"] != "equal" {
			t.Fatalf("%s: %v", name, rows)
		}
		if says, _ := rows[1]["error"].(string); !strings.HasPrefix(says, "line 2: ") || !strings.Contains(says, c.says) {
			t.Errorf("%s: %v, want error %q", name, rows[1], c.says)
		}
		if _, has := rows[1]["id"]; !has {
			t.Errorf("%s: %v, want an id, null if need be", name, rows[1])
		}
	}
	for name, in := range map[string]string{"a mark of UTF-8": "\uFEFF" + good, "U+FFFD itself": `{"id":1,"gold":"\ufffd","pred":"\uFFFD"}`, "no id": `{"gold":"1","pred":"1"}`} {
		var out bytes.Buffer
		if sum, err := Lines(strings.NewReader(in), &out, mathverify.Options{}); err != nil || sum.Equal != 1 || !strings.Contains(out.String(), `"id":`) {
			t.Errorf("%s: %+v, %v, %s", name, sum, err, out.String())
		}
	}
	var out bytes.Buffer
	if sum, err := Lines(strings.NewReader(""), &out, mathverify.Options{}); err != nil || sum != (Summary{}) || out.Len() > 0 {
		t.Errorf("nothing: %+v, %v, %q", sum, err, out.String())
	}
}

func TestReferencesMayBeNumbersAndSeveral(t *testing.T) {
	for pair, want := range map[string]mathverify.Outcome{
		`{"gold":42,"pred":"42"}`: mathverify.Equal, `{"gold":-0.50,"pred":"-\\frac12"}`: mathverify.Equal, `{"gold":1e3,"pred":"1000"}`: mathverify.Equal,
		`{"gold":["4",7,"x"],"pred":"\\boxed{7}"}`: mathverify.Equal, `{"gold":["4",7],"pred":"5"}`: mathverify.Different, `{"gold":["4","7 apples"],"pred":"7","strict":true}`: mathverify.Undecided,
	} {
		var out bytes.Buffer
		if _, err := Lines(strings.NewReader(pair), &out, mathverify.Options{}); err != nil {
			t.Fatal(err)
		}
		if row := decode(t, out.String())[0]; row["verdict"] != string(want) {
			t.Errorf("%s: %v, want %s", pair, row, want)
		}
	}
}
