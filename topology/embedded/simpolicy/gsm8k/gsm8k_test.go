package gsm8k_test

import (
	"fmt"
	"math/big"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/gsm8k"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/tokenizer"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/worked"
)

func load(t *testing.T) *worked.Library {
	t.Helper()
	lib, err := worked.Load(gsm8k.Sample)
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

func TestEveryRowHasAProgramThatGivesItsReference(t *testing.T) {
	lib := load(t)
	if lib.Len() != 400 || len(lib.Refused) != 0 {
		t.Fatalf("%d usable rows, refused %v; want 400 and none", lib.Len(), lib.Refused)
	}
	for _, s := range lib.All() {
		vars := map[string]*big.Rat{}
		for _, line := range s.Lines {
			name, expr, _ := strings.Cut(line, " = ")
			v, err := worked.Eval(expr, vars)
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			vars[name] = v
		}
		if got := worked.Decimal(vars[s.Last]); got != s.Answer {
			t.Errorf("%q: the program gives %s, the reference is %s", s.Question, got, s.Answer)
		}
	}
}

// Python's floats print the reference too, up to the rounding that the policy does.
func TestEveryProgramRunsInPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	lib := load(t)
	var all strings.Builder
	for _, s := range lib.All() {
		fmt.Fprintf(&all, "%s\nprint(%s)\n", strings.Join(s.Lines, "\n"), s.Last)
	}
	out, err := exec.Command(python, "-I", "-c", all.String()).CombinedOutput()
	if err != nil {
		t.Fatalf("python3: %v\n%s", err, out)
	}
	printed := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(printed) != lib.Len() {
		t.Fatalf("%d lines printed, want %d", len(printed), lib.Len())
	}
	for i, s := range lib.All() {
		f, err := strconv.ParseFloat(printed[i], 64)
		if err != nil {
			t.Errorf("%q prints %q", s.Question, printed[i])
			continue
		}
		if got := worked.Decimal(new(big.Rat).SetFloat64(f)); got != s.Answer {
			t.Errorf("%q prints %s, the reference is %s", s.Question, printed[i], s.Answer)
		}
	}
}

func TestProgramsAreOfModestLength(t *testing.T) {
	tok, err := tokenizer.New()
	if err != nil {
		t.Fatal(err)
	}
	var sum, most int
	for _, s := range load(t).All() {
		n := len(tok.Encode(strings.Join(s.Lines, "\n") + "\nprint(" + s.Last + ")\n"))
		sum += n
		most = max(most, n)
	}
	if mean := sum / 400; mean < 20 || mean > 200 || most > 300 {
		t.Errorf("programs have %d tokens on average, %d at most; want 20 to 200, and 300", mean, most)
	}
}

func TestLicenceIsThere(t *testing.T) {
	if !strings.HasPrefix(gsm8k.License, "MIT License") || !strings.Contains(gsm8k.License, "Copyright (c) 2021 OpenAI") {
		t.Errorf("licence reads %.60q", gsm8k.License)
	}
}
