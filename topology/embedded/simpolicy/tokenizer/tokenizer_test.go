package tokenizer

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func build(t testing.TB) *Tokenizer {
	t.Helper()
	tok, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

var texts = []string{
	"", "a", "the", " the", "theatre", "Traceback (most recent call last):\n",
	"<|im_start|>user\nWhat is 1+1?<|im_end|>\n", "<|im_start|", "<<|im_end|>>", "</<tool_call>",
	"\xff\xfe\x00", "na\u00efve \u6570\u5b66 \U0001f600", "\r\n\t ", "\\boxed{18}",
	"<think>\n\n</think>\n\n", "step1 = 16 - 3 - 4\nprint(step1)\n", "<tool_call>\n<function=code_interpreter>\n",
}

func TestRoundTripIsLossless(t *testing.T) {
	tok := build(t)
	for _, s := range texts {
		got, err := tok.Decode(tok.Encode(s))
		if err != nil || got != s {
			t.Errorf("Decode(Encode(%q)) = %q, %v", s, got, err)
		}
	}
}

func TestAddedTokensAreOneTokenWhereverTheyStand(t *testing.T) {
	tok := build(t)
	for _, a := range tok.Added() {
		for _, around := range []string{"", "x", "<", "\n", "</", "print("} {
			ids := tok.Encode(around + a.Content + around)
			want := append(append(tok.Encode(around), a.ID), tok.Encode(around)...)
			if d := cmp.Diff(want, ids); d != "" {
				t.Errorf("%q around %q (-want +got):\n%s", around, a.Content, d)
			}
		}
	}
}

func TestTextLeavesOutOnlyControlTokens(t *testing.T) {
	tok := build(t)
	ids := tok.Encode("<think>x</think><tool_call>y</tool_call><|im_end|><|endoftext|><|im_start|>")
	got, err := tok.Text(ids)
	if want := "<think>x</think><tool_call>y</tool_call>"; err != nil || got != want {
		t.Errorf("Text = %q, %v; want %q", got, err, want)
	}
}

func TestUnknownIdsAreRefused(t *testing.T) {
	tok := build(t)
	for _, id := range []uint32{uint32(tok.Size()), 1 << 31, firstPiece - 1} {
		if _, err := tok.Decode([]uint32{id}); err == nil {
			t.Errorf("Decode(%d): want an error", id)
		}
		if tok.Known(id) {
			t.Errorf("Known(%d) = true", id)
		}
	}
}

func TestVocabularyIsRefusedWithItsLine(t *testing.T) {
	for name, list := range map[string]string{
		"unquoted": "\"ab\"\nab\n", "too short": "\"ab\"\n\"a\"\n", "twice": "\"ab\"\n\"ab\"\n",
	} {
		if _, err := parse(list); err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%s: error %v, want one that names line 2", name, err)
		}
	}
}

// The ids of a few texts stand here so that a change of the vocabulary, which would
// give old records another meaning, is seen.
func TestIdsKeepTheirMeaning(t *testing.T) {
	tok := build(t)
	for text, want := range map[string][]uint32{
		"\n\n":         {320},
		"step1":        {330, '1'},
		"<|im_start|>": {257},
		"</think>":     {264},
	} {
		if d := cmp.Diff(want, tok.Encode(text)); d != "" {
			t.Errorf("%q (-want +got):\n%s", text, d)
		}
	}
}

func FuzzRoundTrip(f *testing.F) {
	for _, s := range texts {
		f.Add(s)
	}
	tok := build(f)
	f.Fuzz(func(t *testing.T, s string) {
		ids := tok.Encode(s)
		got, err := tok.Decode(ids)
		if err != nil || got != s {
			t.Fatalf("Decode(Encode(%q)) = %q, %v", s, got, err)
		}
		if len(ids) > len(s) {
			t.Fatalf("%d tokens for %d bytes", len(ids), len(s))
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	tok := build(b)
	text := strings.Repeat("Natalia sold clips to 48 of her friends in April, and then half as many in May.\n", 20)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		tok.Encode(text)
	}
}
