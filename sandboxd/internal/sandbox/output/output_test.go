package output

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// The tail of any sequence of writes is the tail of their concatenation.
func TestTailKeepsTheEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 40).Draw(t, "size")
		writes := rapid.SliceOf(rapid.SliceOfN(rapid.ByteRange(0, 0x7f), 0, 60)).Draw(t, "writes")
		tail := NewTail(size, nil)
		var all []byte
		for _, w := range writes {
			_, _ = tail.Write(w)
			all = append(all, w...)
		}
		got, total, truncated := tail.Bytes()
		want := all[max(0, len(all)-size):]
		if !bytes.Equal(got, want) {
			t.Fatalf("kept %q, want %q", got, want)
		}
		if total != int64(len(all)) || truncated != (len(all) > size) {
			t.Fatalf("total %d truncated %v, want %d %v", total, truncated, len(all), len(all) > size)
		}
	})
}

func TestTailDropsCutSequence(t *testing.T) {
	tail := NewTail(4, nil)
	_, _ = tail.Write([]byte("aé€b")) // 1 + 2 + 3 + 1 bytes; the cut falls before the euro sign
	if got, _, _ := tail.Bytes(); string(got) != "€b" {
		t.Errorf("kept %q, want %q", got, "€b")
	}
	_, _ = tail.Write([]byte("c")) // now the euro sign is cut
	if got, _, _ := tail.Bytes(); string(got) != "bc" {
		t.Errorf("kept %q, want %q: half a character must not show", got, "bc")
	}
}

func TestBudgetIsSharedAndReportsOnce(t *testing.T) {
	calls := 0
	budget := NewBudget(10, func() { calls++ })
	out, err := NewTail(4, budget), NewTail(4, budget)
	_, _ = out.Write(make([]byte, 6))
	_, _ = err.Write(make([]byte, 4))
	if calls != 0 {
		t.Fatalf("exactly the budget was written, but it reported %d times", calls)
	}
	_, _ = out.Write([]byte{1})
	_, _ = err.Write([]byte{1})
	if calls != 1 {
		t.Fatalf("reported %d times, want once", calls)
	}
}

func BenchmarkTail(b *testing.B) {
	tail := NewTail(64<<10, NewBudget(1<<62, func() {}))
	chunk := make([]byte, 32<<10)
	b.SetBytes(int64(len(chunk)))
	for b.Loop() {
		_, _ = tail.Write(chunk)
	}
}
