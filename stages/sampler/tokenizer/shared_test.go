package tokenizer

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"
)

// TestCases compares with a file of cases made by the model's own tokenizer: lines with
// text and ids. `make token-cases TOKENIZER=folder FILE=cases.jsonl` runs it.
func TestCases(t *testing.T) {
	dir, file := os.Getenv("TOKENIZER"), os.Getenv("TOKEN_CASES")
	if dir == "" || file == "" {
		t.Skip("no TOKENIZER and TOKEN_CASES: `make token-cases` names them")
	}
	start := time.Now()
	tok, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("loaded %d tokens in %v", tok.Size(), time.Since(start))
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<26)
	n, bad := 0, 0
	for lines.Scan() {
		var c struct {
			Text string
			IDs  []uint32
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		n++
		if got := tok.Encode(c.Text); !slices.Equal(got, c.IDs) {
			bad++
			if bad <= 5 {
				t.Errorf("%q:\n got %v\nwant %v", c.Text, got, c.IDs)
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d agree", n-bad, n)
}
