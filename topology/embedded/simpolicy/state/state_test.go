package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir, "run-1", "vocab")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func sample() State {
	st := New()
	st.PolicyVersion = 7
	st.Parameters[0][0] = 1.0 / 3
	st.Optimizer.Steps = 28
	st.Optimizer.Second[3][1] = 1e-17
	st.Positions = map[int32]int64{0: 5, 3: 1 << 40}
	st.Append(Answer{Incarnation: 1, Step: 9, PolicyVersion: 7, Trained: true, Report: []byte{0, 255}, Published: true})
	return st
}

func TestSaveAndLoad(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "new", "dir"))
	if st, found, err := s.Load(); found || err != nil || cmp.Diff(New(), st) != "" {
		t.Fatalf("before the first save: found %t, %v", found, err)
	}
	want := sample()
	if err := s.Save(want); err != nil {
		t.Fatal(err)
	}
	got, found, err := s.Load()
	if err != nil || !found {
		t.Fatalf("found %t, %v", found, err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-saved +loaded):\n%s", d)
	}
}

// A crash in the middle of a save leaves a half-written file beside the state.
func TestAHalfWrittenFileIsNotTheState(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if err := s.Save(sample()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "run-1.json.next"), []byte("{\"format\":"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, _, err := s.Load(); err != nil || got.PolicyVersion != 7 {
		t.Errorf("version %d, %v; want the state saved before", got.PolicyVersion, err)
	}
	if err := s.Save(sample()); err != nil {
		t.Errorf("saving over it: %v", err)
	}
}

func TestLoadRefuses(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if err := s.Save(sample()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "run-1.json")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		old, new string
		want     error
		says     string
	}{
		"a newer format":       {`"format": 1`, `"format": 2`, ErrNewer, "format 2"},
		"no format":            {`"format": 1`, `"form": 1`, ErrUnusable, "format"},
		"another run":          {`"run_id": "run-1"`, `"run_id": "run-2"`, ErrUnusable, "run-2"},
		"another vocabulary":   {`"vocabulary": "vocab"`, `"vocabulary": "other"`, ErrUnusable, "other"},
		"a site that is gone":  {`"opening"`, `"closing"`, ErrUnusable, "opening"},
		"a negative position":  {`"0": 5`, `"0": -5`, ErrUnusable, "-5"},
		"a position of no one": {`"0": 5`, `"x": 5`, ErrUnusable, "x"},
		"not JSON":             {`{`, `<`, ErrUnusable, "run-1.json"},
		"cut off":              {string(good[len(good)/2:]), ``, ErrUnusable, "run-1.json"},
	} {
		bad := strings.Replace(string(good), c.old, c.new, 1)
		if bad == string(good) {
			t.Fatalf("%s: %q is not in the file", name, c.old)
		}
		if err := os.WriteFile(path, []byte(bad), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Load(); !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%s: %v; want %v, naming %q", name, err, c.want, c.says)
		}
		if left, _ := os.ReadFile(path); string(left) != bad {
			t.Errorf("%s: the file was changed", name)
		}
	}
}

func TestOneProcessARun(t *testing.T) {
	dir := t.TempDir()
	first := open(t, dir)
	if _, err := Open(dir, "run-1", "vocab"); !errors.Is(err, ErrInUse) {
		t.Errorf("second opening: %v, want ErrInUse", err)
	}
	other, err := Open(dir, "run-2", "vocab")
	if err != nil {
		t.Errorf("another run in the same directory: %v", err)
	} else {
		other.Close()
	}
	first.Close()
	again, err := Open(dir, "run-1", "vocab")
	if err != nil {
		t.Fatalf("after it was closed: %v", err)
	}
	again.Close()
	if _, err := Open(dir, "../x", "vocab"); err == nil {
		t.Error("a run id that is a path: want an error")
	}
}

func TestAnswersAreBounded(t *testing.T) {
	st := New()
	for i := range uint64(MaxAnswers + 10) {
		st.Append(Answer{Step: i + 1})
	}
	if len(st.Answers) != MaxAnswers {
		t.Errorf("%d answers, want %d", len(st.Answers), MaxAnswers)
	}
	if _, ok := st.Answer(0, 10); ok {
		t.Error("the oldest answers are still there")
	}
	if _, ok := st.Answer(0, MaxAnswers+10); !ok {
		t.Error("the newest answer is gone")
	}
	if _, ok := st.Answer(1, MaxAnswers+10); ok {
		t.Error("an answer of one incarnation is found under another")
	}
}
