package dataset

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
)

func gzipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, text)
	w.Close()
	return b.String()
}

func zstded(text string) string {
	w, _ := zstd.NewWriter(nil)
	return string(w.EncodeAll([]byte(text), nil))
}

// arrowStream is a stream of two batches: messages, an answer, and what nobody asks for.
func arrowStream(t *testing.T, file bool) string {
	t.Helper()
	message := arrow.StructOf(arrow.Field{Name: "role", Type: arrow.BinaryTypes.String}, arrow.Field{Name: "content", Type: arrow.BinaryTypes.String, Nullable: true})
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "prompt", Type: arrow.ListOf(message)}, {Name: "answer", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
		{Name: "at", Type: arrow.FixedWidthTypes.Date32, Nullable: true},
	}, nil)
	var b bytes.Buffer
	var w interface {
		Write(arrow.RecordBatch) error
		io.Closer
	} = ipc.NewWriter(&b, ipc.WithSchema(schema), ipc.WithZstd())
	if file {
		var err error
		if w, err = ipc.NewFileWriter(&b, ipc.WithSchema(schema)); err != nil {
			t.Fatal(err)
		}
	}
	for _, rows := range []string{
		`[{"prompt":[{"role":"system","content":"S"},{"role":"user","content":"Q0"}],"answer":27},{"prompt":[{"role":"user","content":"Q1"}],"answer":0.5}]`,
		`[{"prompt":[{"role":"user","content":"Q2"}],"answer":null},{"prompt":[{"role":"user","content":"Q3"}],"answer":3}]`,
	} {
		batch, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(rows))
		if err == nil {
			err = w.Write(batch)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestKindsOfFile(t *testing.T) {
	jsonl := `{"question":"Q0","answer":"1"}` + "\n" + `{"question":"Q1","answer":2}` + "\n"
	two := []Row{{"0", "Q0", "1", "math"}, {"1", "Q1", "2", "math"}}
	fromArrow := []Row{{"0", "Q0", "27", "math"}, {"1", "Q1", "0.5", "math"}, {"3", "Q3", "3", "math"}}
	table := "\ufeffquestion,answer,id\n\"What, \"\"then\"\"\nis it?\",1,\nQ1,2,x\n"
	fromCSV := []Row{{"0", "What, \"then\"\nis it?", "1", "math"}, {"x", "Q1", "2", "math"}}
	for _, c := range []struct {
		name, content string
		want          []Row
		refused       []Reason
	}{
		{"in.jsonl.gz", gzipped(jsonl), two, nil},
		{"two members.gz", gzipped(jsonl[:31]) + gzipped(jsonl[31:]), two, nil},
		{"in.jsonl.zst", zstded(jsonl), two, nil},
		{"by content.jsonl", gzipped(jsonl), two, nil},
		{"in.csv", table, fromCSV, nil},
		{"in.csv.gz", gzipped(table), fromCSV, nil},
		{"in.CSV.zst", zstded(strings.ReplaceAll(table, "\n", "\r\n")), fromCSV, nil},
		{"short.csv", "question,answer\nQ0\nQ1,2,3\nQ2,\nQ3,4\n", []Row{{"3", "Q3", "4", "math"}}, []Reason{ReasonFieldCount, ReasonFieldCount, ReasonAnswerEmpty}},
		{"latin.csv", "question,answer\ncaf\xe9,1\nQ,2\n", []Row{{"1", "Q", "2", "math"}}, []Reason{ReasonNotUTF8}},
		{"stream.arrow", arrowStream(t, false), fromArrow, []Reason{ReasonAnswerMissing}},
		{"file.arrow", arrowStream(t, true), fromArrow, []Reason{ReasonAnswerMissing}},
	} {
		path := filepath.Join(t.TempDir(), c.name)
		write(t, path, c.content)
		got, refused, err := normalised(path, Layout{})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		if diff := cmp.Diff(c.refused, refused); diff != "" {
			t.Errorf("%s: refused (-want +got):\n%s", c.name, diff)
		}
	}
}

func normalised(path string, l Layout) (rows []Row, refused []Reason, err error) {
	err = ReadObjects(path, func(i int, o Object, err error) error {
		var row Row
		if err == nil {
			row, err = l.Normalise(o, i)
		}
		var why *RefusedError
		if errors.As(err, &why) {
			refused = append(refused, why.Reason)
			return nil
		}
		rows = append(rows, row)
		return err
	})
	return rows, refused, err
}

func TestFilesThatAreRefused(t *testing.T) {
	line := `{"question":"Q","answer":"1"}` + "\n"
	long := gzipped(strings.Repeat(line, 1000))
	stream := arrowStream(t, false)
	bomb := strings.Repeat("\n", freeSize+1)
	for _, c := range []struct{ name, content, says string }{
		{"bomb.jsonl.gz", gzipped(bomb), "over 200 times"},
		{"bomb.jsonl.zst", zstded(bomb), "over 200 times"},
		{"cut.jsonl.gz", long[:len(long)/2], "damaged or cut short"},
		{"cut.jsonl.zst", zstded(line + strings.Repeat("x", 100))[:30], "damaged or cut short"},
		{"head.gz", "\x1f\x8b", "head.gz"},
		{"twice.jsonl.gz", gzipped(gzipped(line)), "compressed with gzip and within it compressed with gzip"},
		{"in.parquet.gz", gzipped("PAR1...."), "within it a parquet file"},
		{"in.json.gz", gzipped("[" + line + "]"), "within it a JSON array"},
		{"cut.arrow", stream[:len(stream)*2/3], "damaged or cut short"},
		{"huge.arrow", "\xff\xff\xff\xff\xff\xff\xff\x7f", "damaged or cut short"},
		{"no.arrow", line, "does not begin like a file of .arrow"},
		{"empty.csv", "", "want a header"},
		{"semicolon.csv", "question;answer\nQ;1\n", "want commas"},
		{"twice.csv", "question,answer,answer\nQ,1,2\n", `two columns are named "answer"`},
		{"quote.csv", "question,answer\nQ,1\nsay \"so\",2\n", "row 2"},
		{"open.csv", "question,answer\n\"Q,1\n" + strings.Repeat("Q,1\n", MaxLine/3), "is a quote not closed"},
	} {
		path := filepath.Join(t.TempDir(), c.name)
		write(t, path, c.content)
		_, _, err := normalised(path, Layout{})
		if !errors.Is(err, ErrUnreadable) || !strings.Contains(fmt.Sprint(err), c.says) || !strings.Contains(fmt.Sprint(err), c.name) {
			t.Errorf("%s: %v, want ErrUnreadable that says %q", c.name, err, c.says)
		}
	}
}

// No damage of an Arrow file does more than end its reading.
func FuzzArrow(f *testing.F) {
	f.Add(uint(0), byte(0), uint(0))
	f.Add(uint(55), byte('d'), uint(80)) // its count of fields asked for 147 GB
	f.Fuzz(func(t *testing.T, at uint, value byte, cut uint) {
		for _, file := range []bool{false, true} {
			content := []byte(arrowStream(t, file))
			content[at%uint(len(content))] = value
			path := filepath.Join(t.TempDir(), "in.arrow")
			write(t, path, string(content[:uint(len(content))-cut%uint(len(content))]))
			_, _, err := normalised(path, Layout{})
			if err != nil && !errors.Is(err, ErrUnreadable) {
				t.Fatalf("untyped error %v", err)
			}
		}
	})
}

func TestFieldsByName(t *testing.T) {
	for _, c := range []struct {
		layout Layout
		row    string
		want   Row
		reason Reason
	}{
		{Layout{Question: "text", Answer: "final"}, `{"text":"Q","final":7,"answer":"no","prompt":"no"}`, Row{"4", "Q", "7", "math"}, ""},
		{Layout{Answer: "expected.value"}, `{"problem":"Q","expected":{"value":"7"}}`, Row{"4", "Q", "7", "math"}, ""},
		{Layout{Answer: "a.b"}, `{"problem":"Q","a.b":"7","a":{"b":"no"}}`, Row{"4", "Q", "7", "math"}, ""},
		{Layout{Question: "chat", Answer: "a"}, `{"chat":[{"role":"user","content":"Q"}],"a":"7"}`, Row{"4", "Q", "7", "math"}, ""},
		{Layout{Question: "text"}, `{"question":"Q","answer":"7"}`, Row{}, ReasonPromptMissing},
		{Layout{Answer: "final"}, `{"question":"Q","answer":"7"}`, Row{}, ReasonAnswerMissing},
		{Layout{Question: "n", Answer: "answer"}, `{"n":3,"answer":"7"}`, Row{}, ReasonPromptNotAList},
	} {
		got, err := c.layout.Normalise(object(t, c.row), 4)
		var why *RefusedError
		if errors.As(err, &why) && why.Reason == c.reason {
			continue
		}
		if err != nil || got != c.want {
			t.Errorf("%+v of %s: %+v, %v; want %+v %s", c.layout, c.row, got, err, c.want, c.reason)
		}
	}
}

func TestFolders(t *testing.T) {
	arrows := `{"_data_files":[{"filename":"data-00000-of-00002.arrow"},{"filename":"data-00001-of-00002.arrow"}],"_indices_data_files":null}`
	for _, c := range []struct {
		name  string
		files map[string]string
		split string
		want  []string
		says  string
	}{
		{"saved to disk", map[string]string{"state.json": arrows, "dataset_info.json": "{}"}, "train",
			[]string{"data-00000-of-00002.arrow", "data-00001-of-00002.arrow"}, ""},
		{"saved to disk with splits", map[string]string{"dataset_dict.json": `{"splits":["train","test"]}`, "test/state.json": `{"_data_files":[{"filename":"a.arrow"}]}`}, "test",
			[]string{"test/a.arrow"}, ""},
		{"without that split", map[string]string{"dataset_dict.json": `{"splits":["train","test"]}`}, "dev", nil, "no split dev but train, test"},
		{"a way out", map[string]string{"state.json": `{"_data_files":[{"filename":"../a.arrow"}]}`}, "train", nil, "elsewhere"},
		{"with indices", map[string]string{"state.json": `{"_data_files":[{"filename":"a"}],"_indices_data_files":[{"filename":"b"}]}`}, "train", nil, "flatten_indices"},
		{"damaged", map[string]string{"state.json": `{`}, "train", nil, "state.json"},
		{"of the hub", map[string]string{"README.md": "", "data/train-00000-of-00002.parquet": "", "data/train-00001-of-00002.parquet": "", "data/test-00000-of-00001.parquet": "", ".cache/train.parquet": ""}, "train",
			[]string{"data/train-00000-of-00002.parquet", "data/train-00001-of-00002.parquet"}, ""},
		{"a part is missing", map[string]string{"data/train-00000-of-00002.parquet": ""}, "train", nil, "1 of the 2 parts"},
		{"several sets", map[string]string{"main/train-00000-of-00001.parquet": "", "socratic/train-00000-of-00001.parquet": ""}, "train", nil, "main and socratic"},
		{"several kinds", map[string]string{"train.jsonl": "", "train.csv.gz": ""}, "train", nil, "same rows twice"},
		{"by folder", map[string]string{"train/a.csv": "", "test/a.csv": ""}, "test", []string{"test/a.csv"}, ""},
		{"a split of its own name", map[string]string{"hard-00000-of-00001.parquet": "", "train.parquet": ""}, "hard", []string{"hard-00000-of-00001.parquet"}, ""},
		{"no split named", map[string]string{"problems.jsonl": "", "LICENSE": ""}, "train", []string{"problems.jsonl"}, ""},
		{"only another split", map[string]string{"test.jsonl": ""}, "train", nil, "speak of [test]: choose with --split"},
		{"nothing", map[string]string{"README.md": ""}, "train", nil, "no files"},
	} {
		dir := t.TempDir()
		for name, content := range c.files {
			os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755)
			write(t, filepath.Join(dir, name), content)
		}
		got, err := filesOf(dir, c.split)
		if c.says != "" && (!strings.Contains(fmt.Sprint(err), c.says) || !errors.Is(err, ErrInput) && !errors.Is(err, ErrUnreadable)) || c.says == "" && err != nil {
			t.Errorf("%s: error %v, want one that says %q", c.name, err, c.says)
		}
		for i := range got {
			got[i], _ = filepath.Rel(dir, got[i])
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestParseInput(t *testing.T) {
	for text, want := range map[string]Input{
		"a.jsonl": {"a.jsonl", 0}, "a.jsonl=0.7": {"a.jsonl", 0.7}, "a=b=3": {"a=b", 3}, "lang=en/a.csv": {"lang=en/a.csv", 0}, "year=2024/": {"year=2024/", 0},
	} {
		if got, err := ParseInput(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "=0.5", "a=0", "a=-1", "a=NaN", "a=Inf"} {
		if got, err := ParseInput(text); !errors.Is(err, ErrInput) {
			t.Errorf("%q: %+v, %v; want ErrInput", text, got, err)
		}
	}
}

// A mixture holds its inputs in their shares, every row once and by the name of its input.
func TestMixture(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.jsonl"), filepath.Join(dir, "b.csv.gz")
	var of [2]strings.Builder
	of[1].WriteString("question,answer\n")
	for i := range 100 {
		fmt.Fprintf(&of[0], `{"question":"A%d","answer":%d,"id":"a%d"}`+"\n", i, i, i)
		fmt.Fprintf(&of[1], "B%d,%d\n", i, i)
	}
	write(t, a, of[0].String())
	write(t, b, gzipped(of[1].String()))
	for _, c := range []struct {
		weights [2]float64
		want    [2]int // rows in train and dev together
	}{
		{[2]float64{0, 0}, [2]int{100, 100}}, {[2]float64{0.7, 0.3}, [2]int{100, 43}}, {[2]float64{1, 4}, [2]int{25, 100}}, {[2]float64{5, 5}, [2]int{100, 100}},
	} {
		out := t.TempDir()
		m, err := Prepare(PrepareConfig{Inputs: []Input{{a, c.weights[0]}, {b, c.weights[1]}}, OutDir: out, Seed: 42, Dev: 10}, nil)
		if err != nil {
			t.Fatal(err)
		}
		total, seen := map[string]int{}, map[string]bool{}
		for _, file := range []string{TrainFile, DevFile} {
			f, err := Open(filepath.Join(out, file))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			for i := range f.Len() {
				row, err := f.Row(i)
				if err != nil || seen[row.ID] {
					t.Fatalf("row %+v, %v: want it once", row, err)
				}
				seen[row.ID] = true
				total[row.DataSource]++
				if want := strings.ToLower(row.Question[:1]); row.DataSource != want {
					t.Errorf("%+v: want data source %s", row, want)
				}
			}
		}
		if got := [2]int{total["a"], total["b"]}; got != c.want || m.Train+m.Dev != got[0]+got[1] {
			t.Errorf("weights %v: %v rows, want %v (manifest %+v)", c.weights, got, c.want, m)
		}
		for n, in := range m.Inputs {
			if in.Train+in.Dev != c.want[n] || in.Used != 100 || in.LeftOutOfMixture != 100-c.want[n] {
				t.Errorf("weights %v: counts %+v, want %d of 100 rows", c.weights, in, c.want[n])
			}
		}
		order, err := os.ReadFile(filepath.Join(out, OrderFile))
		if err != nil || !strings.HasPrefix(string(order), "file,line,input_row,input,input_file\n") || !strings.Contains(string(order), ",b.csv.gz,b.csv.gz\n") {
			t.Errorf("order.csv %.120s, %v: want input and file of each row", order, err)
		}
	}
}

func TestInputsThatAreRefused(t *testing.T) {
	dir := t.TempDir()
	row := `{"question":"Q","answer":"1"}` + "\n" + `{"question":"R","answer":"1"}`
	a, b, again := filepath.Join(dir, "a.jsonl"), filepath.Join(dir, "b.jsonl"), filepath.Join(dir, "a.csv")
	for _, path := range []string{a, b, again} {
		write(t, path, row)
	}
	for _, c := range []struct {
		inputs []Input
		source string
		is     error
		says   string
	}{
		{nil, "", ErrInput, "no input"},
		{[]Input{{a, 0.5}, {b, 0}}, "", ErrInput, "1 of 2 inputs have a weight"},
		{[]Input{{a, 0}, {b, 0}}, "s", ErrInput, "--data-source"},
		{[]Input{{a, 0}, {again, 0}}, "", ErrInput, "rename one"},
		{[]Input{{a, 1}, {b, 1000}}, "", ErrInput, "a.jsonl has no row in the mixture"},
		{[]Input{{filepath.Join(dir, "absent"), 0}}, "", ErrUnreadable, "absent"},
	} {
		_, err := Prepare(PrepareConfig{Inputs: c.inputs, OutDir: t.TempDir(), Layout: Layout{DataSource: c.source}}, nil)
		if !errors.Is(err, c.is) || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%+v: %v, want %v that says %q", c.inputs, err, c.is, c.says)
		}
	}
}

// Parts of one folder are one input: rows without an id are numbered through, and refusals
// name their file.
func TestPartsOfAFolder(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "train-00000-of-00002.jsonl"), `{"question":"Q0","answer":"0"}`+"\n"+`{"question":"Q1"}`)
	write(t, filepath.Join(dir, "train-00001-of-00002.jsonl"), `{"question":"Q2","answer":"2"}`+"\n"+`{"question":"Q3"}`)
	m, err := Prepare(PrepareConfig{Inputs: []Input{{Path: dir}}, OutDir: t.TempDir()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if m.DuplicateIDs != 0 || m.Used != 2 || len(m.Refusals) != 2 || m.Refusals[1].Row != 2 || filepath.Base(m.Refusals[1].File) != "train-00001-of-00002.jsonl" {
		t.Errorf("manifest %+v: want 2 used of different ids, and row 2 of each part refused", m)
	}
}
