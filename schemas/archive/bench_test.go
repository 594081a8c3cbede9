package archive

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
)

// scores are records of a few hundred tokens each.
func scores(b *testing.B, n int) (all []Record) {
	b.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		turn := &sluicev1.Turn{Text: strings.Repeat("so it goes, ", 100), Kind: sluicev1.TurnKind_TURN_KIND_ANSWER}
		for range 400 {
			turn.Tokens = tokens.AppendIDs(turn.Tokens, rng.Uint32N(150_000))
			turn.Logprobs = tokens.AppendFloats(turn.Logprobs, -rng.Float32())
			turn.Versions = tokens.AppendVersion(turn.Versions, 3, 1)
		}
		rec, err := codec.Rebuild(&sluicev1.Scored{
			Trajectory: &sluicev1.Trajectory{
				Prompt: &sluicev1.Prompt{
					Group: &sluicev1.GroupPlace{RunId: "run", Step: uint64(1 + i/64)}, GroupSize: 8, GroupsInStep: 8,
					Problem: &sluicev1.Problem{QuestionId: fmt.Sprint("q", i/8), Question: strings.Repeat("what ", 30), Answer: "1"},
				},
				SampleIndex: uint32(i % 8), Copy: rng.Uint64(), PromptTokens: turn.Tokens[:240], Turns: []*sluicev1.Turn{turn}, FinalText: turn.Text,
				EndReason: sluicev1.EndReason_END_REASON_ANSWER,
			},
			Graded: true, Reward: 1,
		}, codec.SchemaVersion)
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, Record{Topic: "scored", Offset: int64(i), Time: time.UnixMilli(1_793_500_000_000 + int64(i)), Record: rec})
	}
	return all
}

// BenchmarkArchive writes 5,000 scores and reads them back, on one goroutine; bytes are
// those of the encoded messages.
func BenchmarkArchive(b *testing.B) {
	all := scores(b, 5000)
	var bytes int64
	for _, r := range all {
		bytes += int64(len(r.Value))
	}
	for _, format := range []string{JSONL, Parquet} {
		name := filepath.Join(b.TempDir(), "scored."+format)
		b.Run("write/"+format, func(b *testing.B) {
			b.SetBytes(bytes)
			for b.Loop() {
				w, err := CreateFile(name, format)
				if err != nil {
					b.Fatal(err)
				}
				for _, r := range all {
					if err := w.Write(r); err != nil {
						b.Fatal(err)
					}
				}
				if err := w.Close(); err != nil {
					b.Fatal(err)
				}
			}
			info, err := os.Stat(name)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(info.Size())/float64(bytes), "file/message")
		})
		b.Run("read/"+format, func(b *testing.B) {
			b.SetBytes(bytes)
			for b.Loop() {
				a, err := Open(name)
				if err != nil {
					b.Fatal(err)
				}
				n := 0
				if err := a.Read("scored", func(Record) error { n++; return nil }); err != nil || n != len(all) {
					b.Fatal(n, err)
				}
				if err := a.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
