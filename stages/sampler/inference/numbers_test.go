package inference

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func TestNumbersAreReadAsTheStandardLibraryDoes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		wantIDs := rapid.SliceOf(rapid.Uint32()).Draw(rt, "ids")
		b, err := json.Marshal(wantIDs)
		if err != nil {
			rt.Fatal(err)
		}
		var ids tokenIDs
		if err := json.Unmarshal(b, &ids); err != nil || !cmp.Equal([]uint32(ids), wantIDs, cmpopts.EquateEmpty()) {
			rt.Fatalf("%s read as %v, %v", b, ids, err)
		}
		wantProbs := rapid.SliceOf(rapid.Float32Range(-1e4, 0)).Draw(rt, "logprobs")
		if b, err = json.MarshalIndent(wantProbs, " ", "\t"); err != nil {
			rt.Fatal(err)
		}
		var probs logprobs
		if err := json.Unmarshal(b, &probs); err != nil || !cmp.Equal([]float32(probs), wantProbs, cmpopts.EquateEmpty()) {
			rt.Fatalf("%s read as %v, %v", b, probs, err)
		}
	})
}

func TestNumbersAtTheEdges(t *testing.T) {
	for in, want := range map[string]tokenIDs{"null": nil, "[]": {}, "[ ]": {}, " [ 1 ,2\n] ": {1, 2}, "[4294967295]": {math.MaxUint32}} {
		var got tokenIDs
		if err := json.Unmarshal([]byte(in), &got); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%q read as %#v, %v; want %#v", in, got, err, want)
		}
	}
	for _, in := range []string{"[-1]", "[1.5]", "[4294967296]", `["1"]`, "[[1]]", "[null]", "7", `{"a":1}`, `"1"`, "[true]"} {
		var got tokenIDs
		if err := json.Unmarshal([]byte(in), &got); err == nil {
			t.Errorf("token ids %q read as %v, want an error", in, got)
		}
	}
	for _, in := range []string{`["x"]`, "[[1]]", "7", "[true]", "[1e999]"} {
		var got logprobs
		if err := json.Unmarshal([]byte(in), &got); err == nil {
			t.Errorf("logprobs %q read as %v, want an error", in, got)
		}
	}
	var got logprobs
	if err := json.Unmarshal([]byte("[null, -0.5]"), &got); err != nil || len(got) != 2 || got[0] == got[0] || got[1] != -0.5 {
		t.Errorf("[null, -0.5] read as %v, %v; want NaN and -0.5", got, err)
	}
}
