package dataset

import (
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"pgregory.net/rapid"
)

func object(t *testing.T, text string) Object {
	t.Helper()
	o, err := parseObject([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return o
}

func verl(content, truth string) string {
	b, _ := json.Marshal(content)
	return fmt.Sprintf(`{"prompt":[{"role":"user","content":%s}],"reward_model":{"ground_truth":%s},"extra_info":{"index":17}}`, b, truth)
}

func TestNormalise(t *testing.T) {
	for _, c := range []struct {
		name, row string
		want      Row
	}{
		{"DAPO, bare", verl("What is 1+1?", `"2"`), Row{"17", "What is 1+1?", "2", "dapo_math"}},
		{"prefix and suffix go", verl(dapoPrefix+"What is 1+1?"+dapoSuffix, `"2"`), Row{"17", "What is 1+1?", "2", "dapo_math"}},
		{"prefix alone goes", verl(dapoPrefix+"What is 1+1?", `"2"`), Row{"17", "What is 1+1?", "2", "dapo_math"}},
		{"the short template goes", verl(dapoShortPrefix+"What is 1+1?", `"2"`), Row{"17", "What is 1+1?", "2", "dapo_math"}},
		{"suffix alone goes", verl("What is 1+1?"+dapoSuffix, `"2"`), Row{"17", "What is 1+1?", "2", "dapo_math"}},
		{"only an exact prefix goes", verl(" "+dapoPrefix+"Q", `"2"`), Row{"17", strings.TrimSpace(dapoPrefix) + "\n\nQ", "2", "dapo_math"}},
		{"once each", verl(dapoPrefix+dapoPrefix+"Q", `"2"`), Row{"17", dapoPrefix + "Q", "2", "dapo_math"}},
		{"the first of several answers", verl("Q", `["7","8"]`), Row{"17", "Q", "7", "dapo_math"}},
		{"an answer that is a number", verl("Q", `12`), Row{"17", "Q", "12", "dapo_math"}},
		{"an answer of 0", verl("Q", `0`), Row{"17", "Q", "0", "dapo_math"}},
		{"an id of 0", `{"prompt":[{"role":"user","content":"Q"}],"reward_model":{"ground_truth":"1"},"extra_info":{"index":0}}`,
			Row{"0", "Q", "1", "dapo_math"}},
		{"an id that is text", `{"prompt":[{"role":"user","content":"Q"}],"reward_model":{"ground_truth":"1"},"extra_info":{"index":"a-1"},"data_source":"math_dapo"}`,
			Row{"a-1", "Q", "1", "math_dapo"}},
		{"no id: the row's number", `{"prompt":[{"role":"user","content":"Q"}],"reward_model":{"ground_truth":"1"}}`, Row{"4", "Q", "1", "dapo_math"}},
		{"the last user message of several", `{"prompt":[{"role":"system","content":"S"},{"role":"user","content":"Q"}],"reward_model":{"ground_truth":"1"}}`,
			Row{"4", "Q", "1", "dapo_math"}},
		{"GSM8K", `{"question":"Q","answer":"2*3=<<2*3=6>>6\n#### 1,006"}`, Row{"4", "Q", "1006", "gsm8k"}},
		{"plain", `{"question":"Q","answer":"\\frac12","id":9}`, Row{"9", "Q", `\frac12`, "math"}},
		{"TRL, prompt as text", `{"prompt":"Q","ground_truth":"5"}`, Row{"4", "Q", "5", "math"}},
		{"TRL, prompt as messages", `{"prompt":[{"role":"system","content":"S"},{"role":"user","content":"Q"}],"solution":"so \\boxed{5}","id":"x"}`,
			Row{"x", "Q", `so \boxed{5}`, "math"}},
		{"TRL, prompt with an answer of GSM8K's", `{"prompt":"Q","answer":"2+3\n#### 5,000"}`, Row{"4", "Q", "5000", "gsm8k"}},
		{"messages", `{"messages":[{"role":"user","content":"Q"},{"role":"assistant","content":"5"}]}`, Row{"4", "Q", "5", "math"}},
		{"messages beside a reference", `{"messages":[{"role":"user","content":"Q"},{"role":"assistant","content":"is it 6?"}],"answer":5}`, Row{"4", "Q", "5", "math"}},
		{"plain with problem and a decimal", `{"problem":"Q","answer":27.0,"id":0}`, Row{"0", "Q", "27", "math"}},
	} {
		got, err := Layout{}.Normalise(object(t, c.row), 4)
		if err != nil || got != c.want {
			t.Errorf("%s: got %+v, %v; want %+v", c.name, got, err, c.want)
		}
	}
}

func TestNormaliseRefuses(t *testing.T) {
	for _, c := range []struct {
		row  string
		want Reason
	}{
		{`{}`, ReasonPromptMissing},
		{`{"prompt":null}`, ReasonPromptMissing},
		{`{"prompt":[]}`, ReasonPromptMissing},
		{`{"prompt":[{"role":"system","content":"a"},{"role":"assistant","content":"b"}]}`, ReasonPromptMissing},
		{`{"prompt":"Q"}`, ReasonAnswerMissing},
		{`{"prompt":17}`, ReasonPromptNotAList},
		{`{"prompt":"[{'role': 'user', 'content': 'Q'}]","answer":"1"}`, ReasonPromptNotAList},
		{`{"messages":[{"role":"user","content":"Q"}]}`, ReasonAnswerMissing},
		{`{"messages":[{"role":"assistant","content":"1"},{"role":"user","content":"Q"}]}`, ReasonAnswerMissing},
		{`{"prompt":["Q"]}`, ReasonPromptNotAList},
		{`{"prompt":[{"role":"user"}],"reward_model":{"ground_truth":"1"}}`, ReasonQuestionEmpty},
		{verl("", `"1"`), ReasonQuestionEmpty},
		{verl(dapoPrefix+dapoSuffix, `"1"`), ReasonQuestionEmpty},
		{`{"prompt":[{"role":"user","content":"Q"}]}`, ReasonAnswerMissing},
		{verl("Q", `null`), ReasonAnswerMissing},
		{verl("Q", `""`), ReasonAnswerEmpty},
		{verl("Q", `"  "`), ReasonAnswerEmpty},
		{verl("Q", `[]`), ReasonAnswerEmpty},
		{verl("Q", `[null]`), ReasonAnswerMissing},
		{verl("Q", `{"a":1}`), ReasonAnswerNotScalar},
		{verl("Q", `true`), ReasonAnswerNotScalar},
		{`{"question":"Q","answer":"1","id":[1]}`, ReasonIDNotScalar},
		{`{"question":"Q"}`, ReasonAnswerMissing},
		{`{"question":"` + strings.Repeat("Q", MaxText) + `","answer":"1"}`, ReasonTooLong},
	} {
		_, err := Layout{}.Normalise(object(t, c.row), 4)
		var why *RefusedError
		if !errors.As(err, &why) || why.Reason != c.want || !errors.Is(err, ErrRefused) {
			t.Errorf("%s: error %v, want %s", c.row, err, c.want)
		}
	}
}

// Permutations as Python 3's random.Random(seed).shuffle(list(range(n))) gives them.
func TestPythonShuffle(t *testing.T) {
	for _, c := range []struct {
		n    int
		seed uint64
		want []int
	}{
		{1, 42, []int{0}},
		{2, 42, []int{1, 0}},
		{3, 42, []int{1, 0, 2}},
		{3, 123456789012, []int{2, 0, 1}},
		{10, 0, []int{7, 8, 1, 5, 3, 4, 2, 0, 9, 6}},
		{10, 1, []int{6, 8, 9, 7, 5, 3, 0, 4, 1, 2}},
		{10, 123456789012, []int{2, 8, 5, 7, 9, 3, 1, 4, 0, 6}},
	} {
		if diff := cmp.Diff(c.want, PythonShuffle(c.n, c.seed)); diff != "" {
			t.Errorf("n %d, seed %d (-python +ours):\n%s", c.n, c.seed, diff)
		}
	}
	b, _ := json.Marshal(PythonShuffle(1319, 42))
	sum := sha256.Sum256([]byte(strings.ReplaceAll(string(b), ",", ", ")))
	if got, want := hex.EncodeToString(sum[:]), "e9e083f00b114aeca14c13ca07d1d72d9cb8c3666664ad52c73e9bc70edf8c95"; got != want {
		compact := sha256.Sum256(b)
		t.Errorf("n 1319, seed 42: SHA-256 %s (compact %x), want %s", got, compact, want)
	}
}

func TestPrepare(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "in.jsonl")
	var lines []string
	for i := range 10 {
		lines = append(lines, fmt.Sprintf(`{"question":"Q%d","answer":%d,"id":%d}`, i, i, i))
	}
	lines = append(lines, `{"question":"no answer"}`, `not json`, `{"question":"again","answer":1,"id":3}`)
	write(t, in, strings.Join(lines, "\n"))
	out := filepath.Join(dir, "out")
	m, err := Prepare(PrepareConfig{Inputs: []Input{{Path: in}}, OutDir: out, Seed: 42, Dev: 2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if m.Rows != 13 || m.Used != 11 || m.Train != 9 || m.Dev != 2 || m.DuplicateIDs != 1 {
		t.Errorf("manifest %+v: want 13 rows, 11 used, 9 train, 2 dev, 1 duplicate id", m)
	}
	want := []Refusal{{Row: 11, Reason: ReasonAnswerMissing, Detail: "there is no reference answer"}}
	if len(m.Refusals) != 2 || m.Refusals[0] != want[0] || m.Refusals[1].Row != 12 || m.Refusals[1].Reason != ReasonNotAnObject {
		t.Errorf("refusals %+v: want row 11 without an answer and row 12 not JSON", m.Refusals)
	}
	p := PythonShuffle(11, 42)
	f, err := Open(filepath.Join(out, TrainFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i := range f.Len() {
		row, err := f.Row(i)
		if err != nil {
			t.Fatal(err)
		}
		if want := p[2+i]; want < 10 && (row.ID != fmt.Sprint(want) || row.Answer != fmt.Sprint(want)) {
			t.Errorf("train row %d is %+v, want row %d of the input", i, row, want)
		}
	}
	records, err := csv.NewReader(open(t, filepath.Join(out, OrderFile))).ReadAll()
	if err != nil || len(records) != 12 {
		t.Fatalf("order.csv: %d records, %v; want a header and 11", len(records), err)
	}
	if records[1][0] != DevFile || records[3][0] != TrainFile || records[3][1] != "1" {
		t.Errorf("order.csv %v: want two lines of dev, then train from line 1", records[:4])
	}
	again, err := Prepare(PrepareConfig{Inputs: []Input{{Path: in}}, OutDir: out, Seed: 42, Dev: 2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, again); diff != "" {
		t.Errorf("the same preparation differs:\n%s", diff)
	}
}

// A folder with another preparation's files is left as it is, unless told otherwise.
func TestPrepareDoesNotReplaceAnotherSet(t *testing.T) {
	dir := t.TempDir()
	a, b, out := filepath.Join(dir, "a.jsonl"), filepath.Join(dir, "b.jsonl"), filepath.Join(dir, "out")
	write(t, a, `{"question":"Q","answer":"1"}`+"\n"+`{"question":"R","answer":"2"}`)
	write(t, b, `{"question":"S","answer":"1"}`+"\n"+`{"question":"R","answer":"2"}`)
	prepare := func(in string, replace bool) error {
		_, err := Prepare(PrepareConfig{Inputs: []Input{{Path: in}}, OutDir: out, Dev: 1, Replace: replace}, nil)
		return err
	}
	names := func() (all []string) {
		entries, err := os.ReadDir(out)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			content, err := os.ReadFile(filepath.Join(out, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, e.Name(), string(content))
		}
		return all
	}
	if err := prepare(a, false); err != nil {
		t.Fatal(err)
	}
	before := names()
	if err := prepare(b, false); !errors.Is(err, ErrOccupied) || !strings.Contains(err.Error(), "--replace") {
		t.Errorf("error %v, want ErrOccupied and what to do", err)
	}
	if diff := cmp.Diff(before, names()); diff != "" {
		t.Errorf("a refused preparation changed the folder:\n%s", diff)
	}
	if err := prepare(b, true); err != nil {
		t.Fatal(err)
	}
	if cmp.Diff(before, names()) == "" {
		t.Error("--replace left the files as they were")
	}
}

func TestPrepareRefusesADevSplitThatLeavesNothing(t *testing.T) {
	in := filepath.Join(t.TempDir(), "in.jsonl")
	write(t, in, `{"question":"Q","answer":"1"}`+"\n"+`{"question":"R","answer":"2"}`)
	for _, dev := range []int{2, 3, -2} {
		if _, err := Prepare(PrepareConfig{Inputs: []Input{{Path: in}}, OutDir: t.TempDir(), Dev: dev}, nil); !errors.Is(err, ErrSplit) {
			t.Errorf("dev %d of 2 rows: error %v, want ErrSplit", dev, err)
		}
	}
}

// No question of dev is trained on, however often and in whatever spelling it stands; the
// counts say what became of repeats.
func TestNoQuestionOfDevIsTrainedOn(t *testing.T) {
	in := filepath.Join(t.TempDir(), "in.jsonl")
	var lines []string
	for i := range 40 {
		lines = append(lines, fmt.Sprintf(`{"question":"What is %d?","answer":%d,"id":%d}`, i%20, i%20+i/35, i))
	}
	lines[25] = `{"question":"  what\tIS 5? ","answer":5}`
	write(t, in, strings.Join(lines, "\n"))
	for _, dedupe := range []bool{false, true} {
		out := t.TempDir()
		m, err := Prepare(PrepareConfig{Inputs: []Input{{Path: in}}, OutDir: out, Seed: 42, Dev: 4, Dedupe: dedupe}, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := [6]int{20, 20, 5, 4, 32, 4}
		if dedupe {
			want = [6]int{20, 20, 5, 4, 16, 0}
		}
		if got := [6]int{m.Questions, m.RepeatedQuestions, m.ConflictingAnswers, m.Dev, m.Train, m.DevRepeatsLeftOut}; got != want {
			t.Errorf("dedupe %t: questions, repeats, conflicts, dev, train, left out are %v, want %v", dedupe, got, want)
		}
		dev := map[string]bool{}
		for _, file := range []string{DevFile, TrainFile} {
			f, err := Open(filepath.Join(out, file))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			for i := range f.Len() {
				row, err := f.Row(i)
				if err != nil {
					t.Fatal(err)
				}
				if q := normalQuestion(row.Question); file == DevFile {
					dev[q] = true
				} else if dev[q] {
					t.Errorf("dedupe %t: %q is in dev and in train", dedupe, row.Question)
				}
			}
		}
	}
	m, err := Prepare(PrepareConfig{Inputs: []Input{{Path: in}}, OutDir: t.TempDir(), Seed: 42, Dev: DevAuto}, nil)
	if err != nil || m.Dev != 2 {
		t.Errorf("auto keeps %d of 20 questions apart, %v; want 2", m.Dev, err)
	}
	if _, err := Prepare(PrepareConfig{Inputs: []Input{{Path: in}}, OutDir: t.TempDir(), Dev: 20}, nil); !errors.Is(err, ErrSplit) || !strings.Contains(err.Error(), "--dev") {
		t.Errorf("dev of all questions: %v, want ErrSplit naming --dev", err)
	}
}

// What would be damaged silently is refused, or kept and told of.
func TestSilentDamage(t *testing.T) {
	in := filepath.Join(t.TempDir(), "in.jsonl")
	write(t, in, strings.Join([]string{
		"\ufeff" + `{"question":"first, behind a byte order mark","answer":27.0}`,
		"{\"question\":\"caf\xe9\",\"answer\":\"1\"}",
		`{"question":"a\u0000b","answer":"1"}`,
		`{"prompt":[{"role":"system","content":"be brief"},{"role":"user","content":"Q"}],"reward_model":{"ground_truth":["1","2"]}}`,
		`{"question":"text stays","answer":"27.0"}`,
	}, "\n"))
	out := t.TempDir()
	m, err := Prepare(PrepareConfig{Inputs: []Input{{Path: in}}, OutDir: out}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if m.Used != 3 || m.Refused[ReasonNotUTF8] != 1 || m.Refused[ReasonNUL] != 1 || m.Notes["system_message"] != 1 || m.Notes["further_answers"] != 1 {
		t.Errorf("manifest %+v: want 3 used, Latin-1 and NUL refused, the system message and the further answer told of", m)
	}
	b, err := os.ReadFile(filepath.Join(out, TrainFile))
	if err != nil || !strings.Contains(string(b), `"answer":"27",`) || !strings.Contains(string(b), `"answer":"27.0",`) {
		t.Errorf("%s, %v: want the number 27.0 as 27 and the text as it was", b, err)
	}
	for content, name := range map[string]string{
		"PK\x03\x04": "xlsx", ` [{"question":"Q"}]`: "JSON array", "version https://git-lfs": "Git LFS",
	} {
		write(t, in, content)
		if _, err := Prepare(PrepareConfig{Inputs: []Input{{Path: in}}, OutDir: out}, nil); !errors.Is(err, ErrUnreadable) || !strings.Contains(err.Error(), name) {
			t.Errorf("%q: %v, want ErrUnreadable that names %s", content, err, name)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, TrainFile)
	good := `{"id":"1","question":"Q","answer":"1","data_source":"s"}`
	for _, c := range []struct {
		name, content, manifest string
		is                      error
		says                    string
	}{
		{"no answer", good + "\n" + `{"id":"2","question":"Q"}`, "", ErrNotPrepared, "line 2: problem file is not prepared: answer"},
		{"empty file", "", "", ErrNotPrepared, "no rows"},
		{"not JSON", "{", "", ErrNotPrepared, "line 1"},
		{"other than its manifest", good, `{"sha256":{"train.jsonl":"00"}}`, ErrChanged, "prepare it again"},
	} {
		write(t, path, c.content)
		os.Remove(filepath.Join(dir, ManifestFile))
		if c.manifest != "" {
			write(t, filepath.Join(dir, ManifestFile), c.manifest)
		}
		_, err := Open(path)
		if !errors.Is(err, c.is) || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%s: error %v, want %v that says %q", c.name, err, c.is, c.says)
		}
	}
	if _, err := Open(filepath.Join(dir, "absent")); !errors.Is(err, ErrUnreadable) {
		t.Errorf("absent file: error %v, want ErrUnreadable", err)
	}
}

func TestParquetLayouts(t *testing.T) {
	type message struct {
		Role    string `parquet:"role,optional"`
		Content string `parquet:"content,optional"`
	}
	type verlRow struct {
		Source string    `parquet:"data_source,optional"`
		Prompt []message `parquet:"prompt,list"`
		Reward struct {
			Truth []string `parquet:"ground_truth,list"`
		} `parquet:"reward_model"`
		Extra *struct {
			Index *int64 `parquet:"index,optional"`
		} `parquet:"extra_info,optional"`
	}
	zero := int64(0)
	rows := []verlRow{{Source: "a", Prompt: []message{{"system", "S"}, {"user", "Q0"}}}, {Prompt: []message{{"user", "Q1"}}}, {}}
	rows[0].Reward.Truth = []string{"7", "8"}
	rows[0].Extra = &struct {
		Index *int64 `parquet:"index,optional"`
	}{&zero}
	rows[1].Reward.Truth = []string{"9"}
	for _, codec := range []struct {
		name  string
		apply parquet.WriterOption
	}{{"snappy", parquet.Compression(&parquet.Snappy)}, {"zstd", parquet.Compression(&parquet.Zstd)}} {
		path := filepath.Join(t.TempDir(), "in.parquet")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		w := parquet.NewGenericWriter[verlRow](f, codec.apply)
		if _, err := w.Write(rows); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Close(), f.Close()); err != nil {
			t.Fatal(err)
		}
		var got []Row
		var refused []error
		err = ReadObjects(path, func(i int, o Object, _ error) error {
			row, err := Layout{}.Normalise(o, i)
			if err != nil {
				refused = append(refused, err)
				return nil
			}
			got = append(got, row)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		want := []Row{{"0", "Q0", "7", "a"}, {"1", "Q1", "9", "dapo_math"}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", codec.name, diff)
		}
		if len(refused) != 1 {
			t.Errorf("%s: refused %v, want the row without a prompt", codec.name, refused)
		}
	}
}

func TestOrderIsAPermutationOfEachEpoch(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 500).Draw(rt, "n")
		o := NewOrder(n, rapid.Uint64().Draw(rt, "seed"))
		for epoch := range uint64(3) {
			seen := make([]bool, n)
			for i := range uint64(n) {
				e, row := o.At(epoch*uint64(n) + i)
				if e != epoch || seen[row] {
					rt.Fatalf("n %d, epoch %d, position %d: epoch %d, row %d (seen %t)", n, epoch, i, e, row, seen[row])
				}
				seen[row] = true
			}
		}
	})
}

func TestOrderDiffersByEpochAndSeed(t *testing.T) {
	first := func(seed, epoch uint64) []int {
		o := NewOrder(1000, seed)
		var rows []int
		for i := range uint64(20) {
			_, row := o.At(epoch*1000 + i)
			rows = append(rows, row)
		}
		return rows
	}
	if cmp.Equal(first(1, 0), first(1, 1)) || cmp.Equal(first(1, 0), first(2, 0)) {
		t.Error("two epochs or two seeds give the same order")
	}
	if !cmp.Equal(first(1, 0), first(1, 0)) {
		t.Error("the same epoch and seed give another order")
	}
}

func FuzzNormalise(f *testing.F) {
	f.Add(verl(dapoPrefix+"Q"+dapoSuffix, `["1"]`))
	f.Add(`{"question":"Q","answer":"#### 1,000"}`)
	f.Fuzz(func(t *testing.T, text string) {
		o, err := parseObject([]byte(text))
		if err != nil {
			return
		}
		row, err := Layout{}.Normalise(o, 3)
		if err != nil {
			if !errors.Is(err, ErrRefused) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		if row.ID == "" || row.Question == "" || row.Answer == "" || row.DataSource == "" {
			t.Fatalf("an empty field was let through: %+v", row)
		}
	})
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}
