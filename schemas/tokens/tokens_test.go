package tokens_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
)

// The bytes are those that numpy's "<u4" and "<f4" read.
func TestLayout(t *testing.T) {
	if got, want := tokens.IDs(1, 0x01020304), []byte{1, 0, 0, 0, 4, 3, 2, 1}; !slices.Equal(got, want) {
		t.Errorf("ids are % x, want % x", got, want)
	}
	if got, want := tokens.Floats(-0.5), []byte{0, 0, 0, 0xbf}; !slices.Equal(got, want) {
		t.Errorf("floats are % x, want % x", got, want)
	}
	if tokens.IDs() != nil || tokens.Floats() != nil {
		t.Error("no values are no bytes")
	}
}

func TestValuesComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOf(rapid.Uint32()).Draw(t, "ids")
		bits := rapid.SliceOf(rapid.OneOf(rapid.Uint32Range(0x3f000000, 0x7f7fffff), rapid.Uint32())).Draw(t, "bits")
		if len(bits) > 0 && rapid.Bool().Draw(t, "spoilt") {
			bits[rapid.IntRange(0, len(bits)-1).Draw(t, "at")] |= 0x7f800000
		}
		cut := rapid.IntRange(0, len(ids)).Draw(t, "cut")
		array := tokens.AppendIDs(tokens.IDs(ids[:cut]...), ids[cut:]...)
		if got := tokens.ReadIDs(array); !slices.Equal(got, ids) || tokens.Count(array) != len(ids) {
			t.Fatalf("%v came back as %v", ids, got)
		}
		var floats []byte
		for _, b := range bits {
			floats = tokens.AppendFloats(floats, math.Float32frombits(b))
		}
		finite := -1
		for i, v := range tokens.ReadFloats(floats) {
			if math.Float32bits(v) != bits[i] || math.Float32bits(tokens.Float(floats, i)) != bits[i] {
				t.Fatalf("bits %x came back as %x", bits[i], math.Float32bits(v))
			}
			if f := float64(v); finite < 0 && (math.IsNaN(f) || math.IsInf(f, 0)) {
				finite = i
			}
		}
		if got := tokens.NotFinite(floats); got != finite {
			t.Fatalf("the first value that is not finite is %d, want %d", got, finite)
		}
	})
}

// Appending to what another array shares its bytes with does not change that one.
func TestAppendDoesNotWriteIntoOthers(t *testing.T) {
	whole := tokens.IDs(1, 2, 3)
	_ = tokens.AppendIDs(slices.Clip(whole[:4]), 9)
	if got := tokens.ReadIDs(whole); !slices.Equal(got, []uint32{1, 2, 3}) {
		t.Errorf("the other array is %v", got)
	}
}

func TestVersions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		perToken := rapid.SliceOf(rapid.Uint32Range(0, 3)).Draw(t, "versions")
		spans := tokens.Versions(perToken...)
		if got := tokens.ReadVersions(spans); !slices.Equal(got, perToken) || tokens.CountVersions(spans) != len(perToken) {
			t.Fatalf("%v came back as %v", perToken, got)
		}
		for i := 1; i < len(spans); i++ {
			if spans[i].GetVersion() == spans[i-1].GetVersion() {
				t.Fatalf("two spans of version %d stand side by side", spans[i].GetVersion())
			}
		}
		oldest, newest, ok := tokens.VersionRange(spans)
		if ok != (len(perToken) > 0) || ok && (oldest != slices.Min(perToken) || newest != slices.Max(perToken)) {
			t.Fatalf("range of %v is %d to %d, %t", perToken, oldest, newest, ok)
		}
	})
}

func TestTrajectory(t *testing.T) {
	tr := &sluicev1.Trajectory{PromptTokens: tokens.IDs(1, 2), Turns: []*sluicev1.Turn{
		{Tokens: tokens.IDs(3), GlueTokens: tokens.IDs(4, 5)}, {Tokens: tokens.IDs(6)},
	}}
	if got, want := tokens.OfTrajectory(tr), []uint32{1, 2, 3, 4, 5, 6}; !slices.Equal(got, want) || tokens.InTrajectory(tr) != 6 {
		t.Errorf("%v, %d in all; want %v", got, tokens.InTrajectory(tr), want)
	}
}
