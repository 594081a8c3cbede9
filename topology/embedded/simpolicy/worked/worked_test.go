package worked

import (
	"errors"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, answer string
		lines        []string
		result       string
	}{
		{"one step", "2+3=<<2+3=5>>5\n#### 5", []string{"step1 = 2 + 3"}, "5"},
		{"later steps name earlier results", "<<16-3-4=9>> <<9*2=18>>\n#### 18", []string{"step1 = 16 - 3 - 4", "step2 = step1 * 2"}, "18"},
		{"the latest of equal results is named", "<<1+1=2>> <<4/2=2>> <<2*5=10>>\n#### 10", []string{"step1 = 1 + 1", "step2 = 4 / step1", "step3 = step2 * 5"}, "10"},
		{"percent", "<<20%*50=10>>\n#### 10", []string{"step1 = (20 / 100) * 50"}, "10"},
		{"money and thousands", "<<$80,000+$50,000=130000>>\n#### 130,000", []string{"step1 = 80000 + 50000"}, "130000"},
		{"decimals and bare points", "<<.5*007=3.5>>\n#### 3.5", []string{"step1 = 0.5 * 7"}, "3.5"},
		{"parentheses and minus", "<<-(2-5)*4=12>>\n#### 12", []string{"step1 = -(2 - 5) * 4"}, "12"},
		{"x multiplies", "<<3x4=12>>\n#### 12", []string{"step1 = 3 * 4"}, "12"},
	} {
		s, err := Parse(Row{Question: "q", Answer: c.answer})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if d := cmp.Diff(c.lines, s.Lines); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
		if s.Answer != c.result || s.Results[len(s.Results)-1] != c.result {
			t.Errorf("%s: answer %s, results %v; want %s", c.name, s.Answer, s.Results, c.result)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for name, answer := range map[string]string{
		"no reference":       "<<1+1=2>>",
		"reference in words": "<<1+1=2>>\n#### two",
		"no marks":           "just two\n#### 2",
		"wrong result":       "<<1+1=3>>\n#### 3",
		"rounded result":     "<<10/3=3.33>>\n#### 3.33",
		"another reference":  "<<1+1=2>>\n#### 3",
		"no result":          "<<1+1>>\n#### 2",
		"code":               "<<__import__('os')=2>>\n#### 2",
		"division by zero":   "<<1/0=2>>\n#### 2",
		"percent of a sum":   "<<(1+1)%=0.02>>\n#### 0.02",
		"unbalanced":         "<<(1+1=2>>\n#### 2",
		"too deep":           "<<" + strings.Repeat("(", 60) + "1" + strings.Repeat(")", 60) + "=1>>\n#### 1",
		"too long":           "<<" + strings.Repeat("1+", 300) + "1=301>>\n#### 301",
		"power":              "<<9**9**9=1>>\n#### 1",
	} {
		if s, err := Parse(Row{Question: "q", Answer: answer}); !errors.Is(err, ErrNoProgram) {
			t.Errorf("%s: %v, %v; want ErrNoProgram", name, s, err)
		}
	}
}

func TestLoad(t *testing.T) {
	lib, err := Load([]byte(`{"question":"A  b?","answer":"<<1+1=2>>\n#### 2"}

{"question":"No marks","answer":"#### 2"}
{"question":"A b?","answer":"<<1+2=3>>\n#### 3"}
`))
	if err != nil {
		t.Fatal(err)
	}
	if lib.Len() != 1 || len(lib.Refused) != 2 || lib.Refused[0].Line != 3 || lib.Refused[1].Line != 4 {
		t.Errorf("%d solutions, refused %v; want 1, and lines 3 and 4", lib.Len(), lib.Refused)
	}
	for _, q := range []string{"A b?", " A\nb? ", "A b?\n\nPlease box the answer.", "Question: A b?"} {
		if lib.Find(q) == nil {
			t.Errorf("Find(%q) = nil", q)
		}
	}
	if lib.Find("A b") != nil {
		t.Error("a part of a question finds it")
	}
	for _, bad := range []string{"{", "[]", `{"question":""}`, `{"question":"q"}`, `{"question":7,"answer":"x"}`} {
		if _, err := Load([]byte("\n" + bad)); !errors.Is(err, ErrNoRows) || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("Load(%q) alone: %v; want ErrNoRows that names line 2", bad, err)
		}
		good := `{"question":"q?","answer":"<<1+1=2>>\n#### 2"}`
		lib, err := Load([]byte(good + "\n" + bad))
		if err != nil {
			t.Errorf("Load(%q) after a good row: %v; want it left out", bad, err)
		} else if lib.Len() != 1 || len(lib.Refused) != 1 || lib.Refused[0].Line != 2 {
			t.Errorf("Load(%q) after a good row: %d solutions, refused %v; want 1, and line 2", bad, lib.Len(), lib.Refused)
		}
	}
	if _, err := Load(nil); !errors.Is(err, ErrNoRows) {
		t.Errorf("an empty file: %v; want ErrNoRows", err)
	}
}

func TestEvalNamesWhatIsUndefined(t *testing.T) {
	_, err := Eval("step1 + total", map[string]*big.Rat{"step1": big.NewRat(1, 1)})
	var u *UndefinedError
	if !errors.As(err, &u) || u.Name != "total" {
		t.Errorf("error %v, want total undefined", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("<<1+1=2>>\n#### 2")
	f.Add("<<20%*(5-3)=.4>>\n#### 0.4")
	f.Fuzz(func(t *testing.T, answer string) {
		s, err := Parse(Row{Question: "q", Answer: answer})
		if err != nil {
			return
		}
		vars := map[string]*big.Rat{}
		var last *big.Rat
		for i, line := range s.Lines {
			name, expr, _ := strings.Cut(line, " = ")
			v, err := Eval(expr, vars)
			if err != nil {
				t.Fatalf("line %d of %q: %v", i, s.Lines, err)
			}
			vars[name], last = v, v
		}
		if Decimal(last) != s.Answer {
			t.Fatalf("%q gives %s, the reference is %s", s.Lines, Decimal(last), s.Answer)
		}
	})
}
