package archive_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-rl/sluice/schemas/archive"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// bytesAtOnce compares long bytes in less time than cmp takes for each of them.
var bytesAtOnce = cmp.Comparer(bytes.Equal)

// batches are those of a topic behind the first rows, decoded all at once.
func batches(t *testing.T, a *archive.Archive, topic string, skip int64, types ...string) (rows int64, parts [][]archive.Record) {
	t.Helper()
	var all []archive.Batch
	share := 0.0
	err := a.Batches(topic, skip, func(b archive.Batch) error {
		if b.Rows < 1 || b.Share < share || b.Share > 1 {
			t.Errorf("%d rows, share %v behind %v", b.Rows, b.Share, share)
		}
		rows, share, all = rows+b.Rows, b.Share, append(all, b)
		return nil
	})
	if err != nil || rows > 0 && share != 1 {
		t.Fatalf("share %v at the end, %v", share, err)
	}
	parts = make([][]archive.Record, len(all))
	var group sync.WaitGroup
	for i, b := range all {
		group.Go(func() {
			var err error
			if parts[i], err = b.Records(types...); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	return rows, parts
}

func joined(parts [][]archive.Record) (all []archive.Record) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// However many rows were read before, the batches give the rest, in order, whoever decodes
// them.
func TestBatchesGoOnAnywhere(t *testing.T) {
	var records []archive.Record
	for i := range 2500 {
		tr := trajectory("q", strings.Repeat("so ", 400+i%7))
		tr.Copy = uint64(i + 1)
		records = append(records, encoded(t, "scored", int64(i), &sluicev1.Scored{Trajectory: tr, Graded: true, Scores: []*sluicev1.Score{{Name: "outcome", Version: "1"}}}))
	}
	for _, format := range []string{archive.JSONL, archive.Parquet} {
		a, err := archive.Open(write(t, format, records...))
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		header := int64(0)
		if format == archive.JSONL {
			header = 1
		}
		for _, skip := range []int64{0, 1, 2, 700, 1023, 1024, 1025, 2499, 2500, 9999} {
			rows, parts := batches(t, a, "scored", header+skip)
			want := records[min(skip, 2500):]
			if rows != int64(len(want)) {
				t.Errorf("%s: %d rows behind %d, want %d", format, rows, skip, len(want))
			}
			if diff := cmp.Diff(want, joined(parts), bytesAtOnce); len(want)+len(joined(parts)) > 0 && diff != "" {
				t.Fatalf("%s, behind %d:\n%s", format, skip, diff)
			}
			if skip == 0 && len(parts) < 3 {
				t.Errorf("%s: %d batches: too few to mean anything", format, len(parts))
			}
		}
		if _, parts := batches(t, a, "scored", 0, "GroupClosed", "StepBatch"); len(joined(parts)) > 0 {
			t.Errorf("%s: %d records of other types", format, len(joined(parts)))
		}
	}
}

// Lines that others have touched are read all the same.
func TestLinesOfOthers(t *testing.T) {
	records := []archive.Record{
		encoded(t, "scored", 0, trajectory("q1", strings.Repeat("a long text ", 300_000))),
		encoded(t, "scored", 1, trajectory("q2", "short")),
		encoded(t, "other", 0, trajectory("q3", "of another topic")),
		encoded(t, "scored", 2, trajectory("q4", "last")),
	}
	var lines []string
	for _, r := range records {
		body, err := archive.JSONBody(r.Record)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.TrimSpace(string(archive.AppendJSON(nil, r, body))))
	}
	want := []archive.Record{records[0], records[1], records[3]}
	spaced := strings.NewReplacer(`","`, `" , "`, `":{`, `" : {`)
	for name, text := range map[string]string{
		"without a first line": strings.Join(lines, "\n") + "\n",
		"without a last end":   strings.Join(lines, "\n"),
		"ends of DOS":          string(archive.JSONHeader()) + strings.Join(lines, "\r\n") + "\r\n",
		"blank lines":          "\n\n" + strings.Join(lines, "\n \n") + "\n\n",
		"spaces":               spaced.Replace(strings.Join(lines, "\n")),
		"fields in disorder":   strings.ReplaceAll(strings.Join(lines, "\n"), `{"topic":"scored","partition":0`, `{"partition":0,"topic":"scored"`),
	} {
		path := filepath.Join(t.TempDir(), "lines.jsonl")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, read(t, path, "scored"), bytesAtOnce); diff != "" {
			t.Errorf("%s: %.2000s", name, diff)
		}
	}
}
