package perform

import (
	"testing"

	"github.com/sluice-rl/sluice/stages/replayer/replay/replaytest"
)

// BenchmarkDecode reads one recorded score of a few hundred tokens.
func BenchmarkDecode(b *testing.B) {
	recs := replaytest.Record(replaytest.Shape{Seed: 1, Steps: 10, Groups: 2, Size: 4, Tokens: 400, Text: 1200, Calm: true}).Records("scored")
	var size int64
	for _, rec := range recs {
		size += int64(len(rec.Value))
	}
	b.SetBytes(size / int64(len(recs)))
	b.ReportAllocs()
	for i := range b.N {
		if _, err := recs[i%len(recs)].Decode(); err != nil {
			b.Fatal(err)
		}
	}
}
