package vectors

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// variable names the folder.
const variable = "SLUICE_VECTORS"

// check compares one row. A nil error is agreement; errOnPurpose marks a difference
// that the design wants.
type check func(row []byte) error

// errOnPurpose is in the chain of the difference of a row where the design departs from
// the recipe.
var errOnPurpose = errors.New("differs on purpose")

// checks are the files that can be compared.
var checks = map[string]check{
	"boxed":           checkBoxed,
	"closing_overlap": checkClosingOverlap,
	"observation":     checkObservation,
	"packing":         checkPacking,
	"parse":           checkParse,
	"prepare":         checkPrepare,
	"python_shuffle":  checkPythonShuffle,
	"rollouts":        checkRollouts,
}

// report is the outcome of one file.
type report struct {
	rows, agree int
	onPurpose   map[string]int
	first       string // the first row that does not agree
}

func (r report) differ() int {
	n := r.rows - r.agree
	for _, k := range r.onPurpose {
		n -= k
	}
	return n
}

func (r report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d rows agree", r.agree, r.rows)
	for why, n := range r.onPurpose {
		fmt.Fprintf(&b, ", %d %s", n, why)
	}
	if n := r.differ(); n > 0 {
		fmt.Fprintf(&b, ", %d do not; the first: %s", n, r.first)
	}
	return b.String()
}

// maxRow bounds one line: a batch of whole rollouts is some hundred kilobytes.
const maxRow = 64 << 20

func compareFile(path string, c check) (report, error) {
	f, err := os.Open(path)
	if err != nil {
		return report{}, err
	}
	defer f.Close()
	r := report{onPurpose: map[string]int{}}
	in := bufio.NewScanner(f)
	in.Buffer(nil, maxRow)
	for line := 1; in.Scan(); line++ {
		if len(strings.TrimSpace(in.Text())) == 0 {
			continue
		}
		r.rows++
		err := c(in.Bytes())
		switch {
		case err == nil:
			r.agree++
		case errors.Is(err, errOnPurpose):
			r.onPurpose[err.Error()]++
		case r.first == "":
			r.first = fmt.Sprintf("line %d: %.600v", line, err)
		}
	}
	if err := in.Err(); err != nil {
		return report{}, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// compareFolder compares each known file of a folder in a subtest.
func compareFolder(t *testing.T, dir string) {
	found := 0
	for _, name := range slices.Sorted(maps.Keys(checks)) {
		c := checks[name]
		path := filepath.Join(dir, name+".jsonl")
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		found++
		t.Run(name, func(t *testing.T) {
			r, err := compareFile(path, c)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s.jsonl: %s", name, r)
			if r.rows == 0 {
				t.Error("no rows")
			}
			if r.differ() > 0 {
				t.Fail()
			}
		})
	}
	if found == 0 {
		t.Fatalf("%s holds none of the files that can be compared", dir)
	}
}

func TestVectors(t *testing.T) {
	dir := os.Getenv(variable)
	if dir == "" {
		t.Skipf("%s is not set: give it a folder of recorded rows, as `make vectors DIR=...` does", variable)
	}
	compareFolder(t, dir)
}

func TestOwnRows(t *testing.T) { compareFolder(t, "testdata") }

// A comparison that cannot fail shows nothing: each check must object to a row whose
// recorded result has been tampered with.
func TestChecksObject(t *testing.T) {
	for name, rows := range map[string][]string{
		"boxed":           {`{"text": "\\boxed{4}", "answer_window_300": "5"}`, `{"text": "\\boxed{4}", "answer_window_300": null}`},
		"closing_overlap": {`{"completion": [1, 2], "closing": [2], "overlap": 0}`},
		"observation": {`{"stdout": "1\n", "stderr": "", "returncode": 0, "timed_out": false, "timeout_s": 30, "content": "2\n"}`,
			`{"stdout": "1\n", "stderr": "", "returncode": null, "timed_out": true, "timeout_s": 31, "content": "Error: execution timed out after 30 seconds."}`},
		"packing": {`{"lengths": [1, 2], "micro_batches": [[0, 1]], "max_items": 32, "max_padded_tokens": 64000}`},
		"parse": {`{"text": "hello", "kind": "invalid", "content": "hello", "code": null}`,
			`{"text": "hello", "kind": "answer", "content": "hell", "code": null}`},
		"prepare": {`{"index": 4, "row": {"prompt": [{"role": "user", "content": "1?"}], "reward_model": {"ground_truth": "3"}}, "normalized": null}`,
			`{"index": 4, "row": {"prompt": [{"role": "user", "content": "1?"}], "reward_model": {"ground_truth": "3"}}, "normalized": {"id": "5", "question": "1?", "answer": "3", "data_source": "dapo_math"}}`,
			`{"index": 4, "row": {}, "normalized": {"id": "4", "question": "1?", "answer": "3", "data_source": "dapo_math"}}`},
		"python_shuffle": {`{"n": 2, "seed": 0, "first": [1, 0], "last": [1, 0], "sha256_of_json": "x"}`},
	} {
		for _, row := range rows {
			if err := checks[name]([]byte(row)); err == nil || errors.Is(err, errOnPurpose) {
				t.Errorf("%s: %v for the tampered row %s", name, err, row)
			}
		}
	}
	for _, change := range tamperings {
		rows, err := os.ReadFile("testdata/rollouts.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		objected := false
		for row := range strings.Lines(string(rows)) {
			changed := strings.Replace(row, change[0], change[1], 1)
			if changed != row {
				objected = objected || checkRollouts([]byte(changed)) != nil
			}
		}
		if !objected {
			t.Errorf("rollouts: no objection to %s in place of %s", change[1], change[0])
		}
	}
}

// decode reads a row; a field of another type is an error of the row.
func decode[T any](row []byte) (T, error) {
	var v T
	err := json.Unmarshal(row, &v)
	return v, err
}
