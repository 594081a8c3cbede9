package rewardio

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/sluice-rl/sluice/stages/reward-scorer/jsonlines"
	"github.com/sluice-rl/sluice/stages/reward-scorer/reward"
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

func TestScoreLines(t *testing.T) {
	in := `{"id":"a","text":"so \\boxed{4}","reference":"4"}
{"id":"b","text":"so 4","reference":"4"}
{"id":"c","text":"\\boxed{4}","reference":"4","end_reason":"infra_error"}
{"id":"d"}
{"id":"e","text":"\\boxed{4}","reference":"4","end_reason":"prompt_too_long"}
{"id":"f","text":"\\boxed{4}","reference":"4","end_reason":"tired"}
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
	if r := rows[2]; r["reward"] != nil || r["correct"] != nil || r["valid_format"] != nil || !strings.Contains(r["error"].(string), "not graded") {
		t.Errorf("row c: %v, want nothing but an error", r)
	}
	if r := rows[3]; !strings.Contains(r["error"].(string), "line 4") {
		t.Errorf("row d: %v", r)
	}
	if r := rows[4]; r["reward"] != nil || !strings.Contains(r["error"].(string), "not graded") {
		t.Errorf("row e: %v, want nothing but an error", r)
	}
	if r := rows[5]; !strings.Contains(r["error"].(string), `line 6: end_reason "tired" is none of answer, `) {
		t.Errorf("row f: %v", r)
	}
	if s.Lines != 6 || s.Bad != 2 || s.Ungraded != 2 || s.Equal != 1 {
		t.Errorf("summary %+v", s)
	}
}

// A script that writes a line and waits for its answer gets it.
func TestEachLineIsAnsweredAtOnce(t *testing.T) {
	set := setOf(t, &batcher{most: 64})
	for name, command := range map[string]func(io.Reader, io.Writer) (Summary, error){
		"score": func(r io.Reader, w io.Writer) (Summary, error) { return ScoreLines(t.Context(), r, w, set) },
	} {
		t.Run(name, func(t *testing.T) {
			in, ask := io.Pipe()
			answers, out := io.Pipe()
			done := make(chan error, 1)
			go func() {
				_, err := command(in, out)
				done <- errors.Join(err, out.Close())
			}()
			lines := bufio.NewScanner(answers)
			for _, id := range []string{"1", "2", "3"} {
				if _, err := io.WriteString(ask, `{"id":`+id+`,"gold":"1","pred":"`+id+`","text":"","reference":"1"}`+"\n"); err != nil {
					t.Fatal(err)
				}
				if !lines.Scan() || !strings.HasPrefix(lines.Text(), `{"id":`+id) {
					t.Fatalf("answer to %s: %q", id, lines.Text())
				}
			}
			ask.Close()
			if lines.Scan() {
				t.Errorf("one answer too many: %q", lines.Text())
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// batcher pays the number of code calls. It fails on 13, and panics on 99.
type batcher struct {
	most  int
	asked []int
}

func (b *batcher) Batch() int { return b.most }

func (b *batcher) Pay(_ context.Context, judged []reward.Judged) []reward.Payment {
	b.asked = append(b.asked, len(judged))
	paid := make([]reward.Payment, len(judged))
	for i, j := range judged {
		switch paid[i].Reward = float64(j.CodeCalls); j.CodeCalls {
		case 13:
			paid[i].Err = errors.New("unlucky")
		case 99:
			panic("at the disco")
		}
	}
	return paid
}

func setOf(t *testing.T, l reward.Logic) *reward.Set {
	t.Helper()
	set, err := reward.NewSet("x", reward.Scorer{Name: "plain", Version: "1", Logic: reward.Outcome()}, reward.Scorer{Name: "x", Version: "1", Logic: l})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func asking(calls int, text string) string {
	return fmt.Sprintf(`{"id":%d,"text":"%s","reference":"1","code_calls":%d}`+"\n", calls, text, calls)
}

func TestLinesAreScoredTogetherAndAnsweredInOrder(t *testing.T) {
	b := &batcher{most: 3}
	var in strings.Builder
	for i := range 8 {
		in.WriteString(asking(i, ""))
		if i == 1 {
			in.WriteString("\nno object\n")
		}
	}
	var out bytes.Buffer
	s, err := ScoreLines(t.Context(), strings.NewReader(in.String()), &out, setOf(t, b))
	if err != nil || s.Lines != 9 || s.Bad != 1 || s.Ungraded != 0 {
		t.Fatalf("%+v, %v", s, err)
	}
	if want := []int{2, 3, 3}; !slices.Equal(b.asked, want) { // the third of the first three cannot be read
		t.Errorf("asked for %v at once, want %v", b.asked, want)
	}
	rows := decode(t, out.String())
	if says, _ := rows[2]["error"].(string); !strings.HasPrefix(says, "line 4: ") {
		t.Errorf("row 2: %v, want line 4 that cannot be read", rows[2])
	}
	for i, row := range slices.Delete(rows, 2, 3) {
		if row["id"] != float64(i) || row["reward"] != float64(i) {
			t.Errorf("row %d: %v", i, row)
		}
	}
}

func TestLinesThatAreLongAreNotHeldTogether(t *testing.T) {
	b := &batcher{most: 1000}
	var in strings.Builder
	for i := range 3 {
		in.WriteString(asking(i, strings.Repeat("x", jsonlines.MaxBatch/2)))
	}
	s, err := ScoreLines(t.Context(), strings.NewReader(in.String()), io.Discard, setOf(t, b))
	if err != nil || s.Lines != 3 || !slices.Equal(b.asked, []int{2, 1}) {
		t.Errorf("%+v, %v: asked for %v at once, want 2 and 1", s, err, b.asked)
	}
}

func TestWhatWasReadIsAnsweredThoughReadingFails(t *testing.T) {
	var out bytes.Buffer
	in := io.MultiReader(strings.NewReader(asking(1, "")+asking(2, "")+`{"id":3,`), iotest.ErrReader(errors.New("disk gone")))
	s, err := ScoreLines(t.Context(), in, &out, setOf(t, &batcher{most: 64}))
	if err == nil || !strings.Contains(err.Error(), "reading line 3: disk gone") {
		t.Errorf("got %v", err)
	}
	if rows := decode(t, out.String()); len(rows) != 2 || s.Lines != 2 {
		t.Errorf("%+v, %v; want the two lines that were read", s, rows)
	}
}

func TestFailuresOfTheReward(t *testing.T) {
	const over = `{"id":1,"text":"","reference":"1","end_reason":"infra_error"}` + "\n"
	for name, c := range map[string]struct {
		in     string
		failed int
		all    bool
		last   string
	}{
		"none":             {asking(1, ""), 0, false, ""},
		"one of two":       {asking(13, "") + asking(1, ""), 1, false, "unlucky"},
		"all":              {asking(13, "") + asking(13, ""), 2, true, "unlucky"},
		"a panic":          {asking(1, "") + asking(99, ""), 1, false, "at the disco"},
		"all that was any": {over + asking(13, "") + "no object\n", 1, true, "unlucky"},
		"nothing to score": {over, 0, false, ""},
		"no lines":         {"", 0, false, ""},
	} {
		s, err := ScoreLines(t.Context(), strings.NewReader(c.in), io.Discard, setOf(t, &batcher{most: 64}))
		if err != nil || s.Failed != c.failed || s.AllFailed() != c.all {
			t.Errorf("%s: %+v, %v; want %d failed, all: %v", name, s, err, c.failed, c.all)
		}
		if last := fmt.Sprint(s.LastFailure); c.failed > 0 && !strings.Contains(last, c.last) {
			t.Errorf("%s: last failure %q, want %q", name, last, c.last)
		}
	}
}
