package archive_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"github.com/sluice-rl/sluice/schemas/archive"
	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/custody"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
)

var noon = time.Date(2026, 11, 1, 12, 0, 0, 123e6, time.UTC)

func trajectory(question, text string) *sluicev1.Trajectory {
	return &sluicev1.Trajectory{
		Prompt: &sluicev1.Prompt{
			Group: &sluicev1.GroupPlace{RunId: "run", Step: 3, Slot: 1}, Problem: &sluicev1.Problem{QuestionId: question, DataSource: "gsm8k"},
			GroupSize: 4, GroupsInStep: 2, Mode: sluicev1.Mode_MODE_TRAIN, RunSeed: 1<<63 + 1,
		},
		SampleIndex: 2, Copy: 1<<64 - 1, PromptTokens: tokens.IDs(1, 1<<31), EndReason: sluicev1.EndReason_END_REASON_ANSWER, FinalText: text,
		Turns: []*sluicev1.Turn{{Tokens: tokens.IDs(7), Logprobs: tokens.Floats(-0.1), Versions: tokens.Versions(2), Text: text}}, EndedAt: timestamppb.New(noon),
	}
}

// encoded makes the record of a message, at a place.
func encoded(t interface{ Fatal(...any) }, topic string, offset int64, m proto.Message) archive.Record {
	rec, err := codec.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	return archive.Record{Topic: topic, Partition: 1, Offset: offset, Time: noon, Record: rec}
}

// write makes an archive of records and gives its folder.
func write(t testing.TB, format string, records ...archive.Record) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "archive")
	w, err := archive.Create(dir, format)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func read(t testing.TB, path, topic string) []archive.Record {
	t.Helper()
	a, err := archive.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []archive.Record
	if err := a.Read(topic, func(r archive.Record) error { out = append(out, r); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

var formats = []string{archive.JSONL, archive.Parquet}

// Whatever a topic holds comes back byte for byte: also what is broken, foreign or newer.
func TestNothingIsLost(t *testing.T) {
	good := encoded(t, "scored", 0, &sluicev1.Scored{Trajectory: trajectory("q", "\u2028 <\x00> \U0001F600"), UngradedReason: "why"})
	change := func(f func(*archive.Record)) archive.Record {
		r := good
		r.Headers = append([]codec.Header{}, good.Headers...)
		f(&r)
		return r
	}
	unknown := protowire.AppendVarint(protowire.AppendTag(append([]byte{}, good.Value...), 99, protowire.VarintType), 5)
	records := []archive.Record{
		good,
		change(func(r *archive.Record) { r.Value = unknown }),
		change(func(r *archive.Record) { r.Value = []byte{0xff, 0xfe} }),
		change(func(r *archive.Record) { r.Value = nil }),
		change(func(r *archive.Record) { r.Headers = nil }),
		change(func(r *archive.Record) { r.Headers[1].Value = []byte("999") }),
		change(func(r *archive.Record) { r.Key = []byte{0xff, 0} }),
		change(func(r *archive.Record) {
			r.Headers = append(r.Headers, codec.Header{Key: "traceparent", Value: []byte("x")})
		}),
		change(func(r *archive.Record) { r.Headers[0].Value = []byte("Prompt") }),
	}
	for i := range records {
		records[i].Offset = int64(i)
	}
	for _, format := range formats {
		if diff := cmp.Diff(records, read(t, write(t, format, records...), "scored"), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-written +read):\n%s", format, diff)
		}
	}
}

func TestRandomRecordsComeBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var records []archive.Record
		for i := range rapid.IntRange(0, 20).Draw(rt, "n") {
			r := encoded(rt, "trajectories", int64(i), trajectory(rapid.StringN(1, 5, -1).Draw(rt, "question"), rapid.String().Draw(rt, "text")))
			r.Time = noon.Add(time.Duration(rapid.Int64Range(0, 1e9).Draw(rt, "ms")) * time.Millisecond)
			if rapid.IntRange(0, 3).Draw(rt, "broken") == 0 {
				r.Value = rapid.SliceOf(rapid.Byte()).Draw(rt, "value")
			}
			records = append(records, r)
		}
		dir := filepath.Join(t.TempDir(), "a")
		for _, format := range formats {
			os.RemoveAll(dir)
			w, err := archive.Create(dir, format)
			if err != nil {
				rt.Fatal(err)
			}
			if err := w.Begin("trajectories"); err != nil {
				rt.Fatal(err)
			}
			for _, r := range records {
				if err := w.Write(r); err != nil {
					rt.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				rt.Fatal(err)
			}
			if diff := cmp.Diff(records, read(t, dir, "trajectories"), cmpopts.EquateEmpty()); diff != "" {
				rt.Fatalf("%s:\n%s", format, diff)
			}
		}
	})
}

// Rows of Parquet span row groups, and what is handed out stays as it is.
func TestManyRows(t *testing.T) {
	var records []archive.Record
	for i := range 2500 {
		records = append(records, encoded(t, "scored", int64(i), &sluicev1.Scored{Trajectory: trajectory("q", strings.Repeat(fmt.Sprint(i), 20)), UngradedReason: "why"}))
	}
	got := read(t, write(t, archive.Parquet, records...), "scored")
	if len(got) != len(records) {
		t.Fatalf("%d rows, want %d", len(got), len(records))
	}
	for i := range records {
		if !bytes.Equal(records[i].Value, got[i].Value) || got[i].Offset != int64(i) {
			t.Fatalf("row %d came back otherwise", i)
		}
	}
}

// A trajectory whose tokens are not those that were sampled is read, and not decoded.
func TestBrokenCustodyIsRefused(t *testing.T) {
	tr := trajectory("q", "x")
	custody.SealAll(tr)
	if _, err := encoded(t, "trajectories", 0, tr).Decode(); err != nil {
		t.Error(err)
	}
	tr.Turns[0].Tokens[0]++
	for _, m := range []proto.Message{tr, &sluicev1.Scored{Trajectory: tr, UngradedReason: "why"}, &sluicev1.GroupMember{Scored: &sluicev1.Scored{Trajectory: tr, UngradedReason: "why"}}} {
		if _, err := encoded(t, "trajectories", 0, m).Decode(); !errors.Is(err, custody.ErrBroken) || !strings.Contains(err.Error(), "run.0/3/1/2") {
			t.Errorf("%s: %v, want ErrBroken with its place", codec.TypeName(m), err)
		}
	}
}

// A good record is a readable line.
func TestALineIsReadable(t *testing.T) {
	dir := write(t, archive.JSONL, encoded(t, "scored", 5, &sluicev1.Scored{Trajectory: trajectory("q7", "x"), UngradedReason: "why"}))
	b, err := os.ReadFile(filepath.Join(dir, "scored.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if len(lines) != 2 || lines[0] != `{"archive_format":1}` {
		t.Fatalf("%q", lines)
	}
	for _, part := range []string{
		`{"topic":"scored","partition":1,"offset":5,"time":"2026-11-01T12:00:00.123Z","type":"Scored","schema":1,"message":{"trajectory":{"prompt":{"group":{"run_id":"run","step":"3","slot":1}`,
		`"question_id":"q7"`, `"ungraded_reason":"why"`, `"logprobs":"zczMvQ=="`,
	} {
		if !strings.Contains(lines[1], part) {
			t.Errorf("%s\ndoes not hold %s", lines[1], part)
		}
	}
}

func TestWhatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	whole, err := os.ReadFile(filepath.Join(write(t, archive.Parquet, encoded(t, "scored", 0, trajectory("q", "x"))), "scored.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		path string
		want error
		word string
	}{
		"nothing there":      {filepath.Join(dir, "absent"), archive.ErrNotFound, "absent"},
		"another kind":       {file("a.csv", "x"), archive.ErrUnreadable, ".jsonl"},
		"a newer format":     {file("b.jsonl", `{"archive_format":2}`), archive.ErrNewerFormat, "line 1"},
		"no JSON":            {file("c.jsonl", "{\"archive_format\":1}\nnonsense\n"), archive.ErrUnreadable, "line 2"},
		"neither of both":    {file("d.jsonl", `{"topic":"scored"}`), archive.ErrUnreadable, "message or raw"},
		"an unknown type":    {file("e.jsonl", `{"topic":"scored","type":"Nonsense","schema":1,"message":{}}`), archive.ErrUnreadable, "Nonsense"},
		"an unknown field":   {file("f.jsonl", `{"topic":"scored","type":"Scored","schema":1,"message":{"nonsense":1}}`), archive.ErrUnreadable, "nonsense"},
		"no Parquet":         {file("g.parquet", "PAR1 nonsense PAR1"), archive.ErrUnreadable, "g.parquet"},
		"Parquet cut short":  {file("h.parquet", string(whole[:len(whole)/2])), archive.ErrUnreadable, "h.parquet"},
		"Parquet of another": {file("i.parquet", strings.Replace(string(whole), "sluice.archive.format", "sluice.archivf.format", 1)), archive.ErrUnreadable, "sluice export"},
	} {
		a, err := archive.Open(c.path)
		if err == nil {
			err = a.Read("scored", func(archive.Record) error { return nil })
		}
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.word) {
			t.Errorf("%s: %v, want %v with %q", name, err, c.want, c.word)
		}
	}
	folder := t.TempDir()
	for _, name := range []string{"scored.jsonl", archive.Unfinished} {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := archive.Open(folder); !errors.Is(err, archive.ErrUnfinished) {
		t.Errorf("an unfinished folder: %v", err)
	}
	if _, err := archive.Create(folder, archive.JSONL); err == nil {
		t.Error("a folder that is used was taken")
	}
}

// An archive comes into being whole or not at all.
func TestAnAbortedArchiveLeavesNothing(t *testing.T) {
	parent := t.TempDir()
	w, err := archive.Create(filepath.Join(parent, "a"), archive.JSONL)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(encoded(t, "scored", 0, trajectory("q", "x"))); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(parent, "a")); err == nil {
		t.Error("the folder is there before it is whole")
	}
	if err := w.Abort(); err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(parent); len(entries) > 0 {
		t.Errorf("left: %v", entries)
	}
}

var update = flag.Bool("rewrite-golden", false, "write testdata/format1 anew: only for a change of the format before its first release")

// The archive in testdata was written by the first version of this format. Every later
// one must read it.
func TestTheFirstFormatIsReadForEver(t *testing.T) {
	records := []archive.Record{
		encoded(t, "scored", 0, &sluicev1.Scored{Trajectory: trajectory("q1", `\boxed{7}`), Graded: true, Reward: 1, Correct: true, ValidFormat: true, Answer: "7",
			Scores: []*sluicev1.Score{{Name: "outcome", Version: "1", Reward: 1}}, ScoredAt: timestamppb.New(noon)}),
		encoded(t, "scored", 1, &sluicev1.Scored{Trajectory: trajectory("q2", ""), UngradedReason: "infra_error"}),
	}
	records[1].Value = append(records[1].Value, 0xff)
	for _, format := range formats {
		path := filepath.Join("testdata", "format1", "scored."+format)
		if *update {
			b, err := os.ReadFile(filepath.Join(write(t, format, records...), "scored."+format))
			if err == nil {
				err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, b, 0o644))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(records, read(t, path, "scored")); diff != "" {
			t.Errorf("%s (-as recorded +as read now):\n%s", path, diff)
		}
	}
}

func FuzzJSONLines(f *testing.F) {
	f.Add([]byte(`{"topic":"scored","partition":1,"offset":5,"time":"2026-11-01T12:00:00Z","type":"Scored","schema":1,"message":{"reward":1}}`))
	f.Add([]byte(`{"topic":"x","raw":{"key":"eA==","headers":[{"key":"a","value":""}],"value":null}}`))
	f.Add([]byte(`{"archive_format":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "x.jsonl")
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		a, err := archive.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		// What is read can be written and read again.
		_ = a.Read("scored", func(r archive.Record) error {
			body, err := archive.JSONBody(r.Record)
			if err != nil {
				t.Fatal(err)
			}
			_ = archive.AppendJSON(nil, r, body)
			return nil
		})
	})
}
