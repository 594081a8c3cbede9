package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

// families are small tokenizers trained on this project's README by Hugging Face's
// library under the rules of each family, each with texts and the ids that it gave.
var families = []string{"gpt2", "llama3", "qwen3", "qwen35", "smollm2"}

func family(t testing.TB, name string) (*Tokenizer, []byte) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name, FileName))
	if err != nil {
		t.Fatal(err)
	}
	tok, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	return tok, b
}

func TestIDsAreTheLibrarys(t *testing.T) {
	for _, name := range families {
		tok, b := family(t, name)
		var f struct {
			Test []struct {
				Text string
				IDs  []uint32
			}
		}
		if err := json.Unmarshal(b, &f); err != nil {
			t.Fatal(err)
		}
		if len(f.Test) == 0 {
			t.Fatalf("%s has no cases", name)
		}
		for _, c := range f.Test {
			if got := tok.Encode(c.Text); !slices.Equal(got, c.IDs) {
				t.Errorf("%s: %q gives %v, want %v", name, c.Text, got, c.IDs)
			}
		}
	}
}

func TestDecodeGivesTheTextBack(t *testing.T) {
	for _, name := range families {
		tok, _ := family(t, name)
		rapid.Check(t, func(t *rapid.T) {
			text := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune("ab 1\n'é<|im_end>_ß数"))),
				rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "text")
			want := text
			if strings.HasPrefix(name, "qwen") {
				if !utf8.ValidString(text) {
					t.Skip("NFC of what is no text is not defined")
				}
				want = nfc(text)
			}
			got, err := tok.Decode(tok.Encode(text))
			if err != nil || got != want {
				t.Fatalf("%s: %q came back as %q, %v", name, want, got, err)
			}
		})
	}
}

func TestBytesThatAreNoTextStay(t *testing.T) {
	for _, name := range families {
		tok, _ := family(t, name)
		for _, text := range []string{"\xff", "a\xc3", "\xf0\x9f\x98", "x\x80\x80 y", "<|im_end|>\xfe<|im_end|>"} {
			if got, err := tok.Decode(tok.Encode(text)); err != nil || got != text {
				t.Errorf("%s: %q came back as %q, %v", name, text, got, err)
			}
		}
	}
}

// The two ways of merging are one: the heap only finds the lowest rule faster.
func TestLongPiecesMergeLikeShortOnes(t *testing.T) {
	tok, _ := family(t, "qwen3")
	m := newMerger(tok)
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.StringOfN(rapid.SampledFrom([]rune("abcdeinorst_-é")), 2, 120, -1).Draw(t, "piece")
		short := m.mergeShort(nil, piece)
		if long := m.mergeLong(nil, piece); !slices.Equal(long, short) {
			t.Fatalf("%q: %v by the heap, %v by looking", piece, long, short)
		}
	})
}

func TestRememberedPiecesAreForgottenInTime(t *testing.T) {
	tok, _ := family(t, "gpt2")
	m := newMerger(tok)
	for i := range 2*rememberedPieces + 10 {
		piece := fmt.Sprintf("w%x", i)
		if got, want := m.append(nil, piece), tok.Encode(piece); i%1000 == 0 && !slices.Equal(got, m.merge(nil, piece)) {
			t.Fatalf("%q: %v remembered, %v in the text", piece, got, want)
		}
		if len(m.known) > rememberedPieces {
			t.Fatalf("%d pieces remembered, at most %d", len(m.known), rememberedPieces)
		}
	}
}

func TestSpecialTokensAreNoText(t *testing.T) {
	tok, _ := family(t, "qwen3")
	ids := tok.Encode("<|im_start|>hi<tool_call><|im_end|>")
	if got, err := tok.DecodeText(ids); err != nil || got != "hi<tool_call>" {
		t.Errorf("text %q, %v; want the special tokens left out and <tool_call>, which is text, kept", got, err)
	}
	end, ok := tok.ID("<|im_end|>")
	if !ok || ids[len(ids)-1] != end {
		t.Errorf("<|im_end|> is %d (%v), the last id is %d", end, ok, ids[len(ids)-1])
	}
	if _, err := tok.Decode([]uint32{1, uint32(tok.Size())}); err == nil || !strings.Contains(err.Error(), "index 1") {
		t.Errorf("an id beyond the vocabulary: %v, want its index named", err)
	}
}

func TestNFCIsNFC(t *testing.T) {
	// Up to 29 marks the library is the reference.
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOfN(rapid.SampledFrom([]rune("aeo\u0301\u0323\u0308\u0345한ᄒ\u1161\u11abßﬁ\u0915\u093cÅ\u212b")), 0, 25, -1).Draw(t, "s")
		if got, want := composed(s), norm.NFC.String(s); got != want {
			t.Fatalf("%+q: %+q, want %+q", s, got, want)
		}
	})
	long := "a" + strings.Repeat("\u0301", 100) + "\u0323"
	if got := nfc(long); strings.ContainsRune(got, '\u034f') || utf8.RuneCountInString(got) != 101 || !strings.HasPrefix(got, "ạ") {
		t.Errorf("a hundred marks became %+q", got)
	}
}

func TestWhatIsRefused(t *testing.T) {
	_, whole := family(t, "gpt2")
	change := func(edit func(m map[string]any)) []byte {
		var m map[string]any
		if err := json.Unmarshal(whole, &m); err != nil {
			t.Fatal(err)
		}
		edit(m)
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	model := func(m map[string]any) map[string]any { return m["model"].(map[string]any) }
	for _, c := range []struct {
		name        string
		file        []byte
		unsupported bool
		says        string
	}{
		{"empty", nil, false, "not a tokenizer.json"},
		{"cut", whole[:len(whole)/2], false, "not a tokenizer.json"},
		{"other JSON", []byte(`{"a":1}`), false, `no "model"`},
		{"WordPiece", change(func(m map[string]any) { model(m)["type"] = "WordPiece" }), true, "WordPiece"},
		{"sentencepiece", change(func(m map[string]any) { model(m)["byte_fallback"] = true }), true, "sentencepiece"},
		{"dropout", change(func(m map[string]any) { model(m)["dropout"] = 0.1 }), true, "random"},
		{"suffix", change(func(m map[string]any) { model(m)["end_of_word_suffix"] = "</w>" }), true, "</w>"},
		{"normalizer", change(func(m map[string]any) { m["normalizer"] = map[string]any{"type": "NFKC"} }), true, "NFKC"},
		{"two normalizers", change(func(m map[string]any) {
			m["normalizer"] = map[string]any{"type": "Sequence", "normalizers": []any{map[string]any{"type": "NFC"}, map[string]any{"type": "Lowercase"}}}
		}), true, "Lowercase"},
		{"no pre-tokenizer", change(func(m map[string]any) { m["pre_tokenizer"] = nil }), true, "ByteLevel"},
		{"pattern", change(func(m map[string]any) {
			m["pre_tokenizer"] = map[string]any{"type": "Split", "pattern": map[string]any{"Regex": `\w+`}, "behavior": "Isolated"}
		}), true, `\w+`},
		{"prefix space", change(func(m map[string]any) { m["pre_tokenizer"].(map[string]any)["add_prefix_space"] = true }), true, "add_prefix_space"},
		{"single word", change(func(m map[string]any) { m["added_tokens"].([]any)[0].(map[string]any)["single_word"] = true }), true, "<|im_start|>"},
		{"a byte missing", change(func(m map[string]any) { delete(model(m)["vocab"].(map[string]any), "!") }), true, "0x21"},
		{"a merge's token missing", change(func(m map[string]any) {
			model(m)["merges"] = append(model(m)["merges"].([]any), "zz zz")
		}), false, `"zz"`},
		{"a merge of three", change(func(m map[string]any) { model(m)["merges"] = []any{"a b c"} }), false, "a b c"},
		{"one id twice", change(func(m map[string]any) { model(m)["vocab"].(map[string]any)["!"] = 5 }), false, "have one id"},
		{"a giant id", change(func(m map[string]any) { m["added_tokens"].([]any)[0].(map[string]any)["id"] = 4_000_000_000 }), false, "4000000000"},
		{"a negative id", change(func(m map[string]any) { m["added_tokens"].([]any)[0].(map[string]any)["id"] = -1 }), false, "not a tokenizer.json"},
		{"no content", change(func(m map[string]any) { m["added_tokens"].([]any)[0].(map[string]any)["content"] = "" }), false, "no content"},
	} {
		_, err := Parse(c.file)
		if err == nil || errors.Is(err, ErrUnsupported) != c.unsupported || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v; want unsupported %v and %q in it", c.name, err, c.unsupported, c.says)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range families {
		_, b := family(f, name)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		tok, err := Parse(b)
		if err != nil {
			return
		}
		if _, err := tok.Decode(tok.Encode("a b<|im_end|>é \n")); err != nil {
			t.Fatal(err)
		}
	})
}

func Example() {
	tok, err := Open("testdata/qwen3")
	if err != nil {
		fmt.Println(err)
		return
	}
	ids := tok.Encode("<|im_start|>6*7")
	text, err := tok.DecodeText(ids)
	fmt.Println(len(ids), text, err)
	// Output: 4 6*7 <nil>
}

func BenchmarkEncode(b *testing.B) {
	readme, err := os.ReadFile("../../../README.md")
	if err != nil {
		b.Fatal(err)
	}
	// A real vocabulary is larger than the caches; one trained here is not.
	tok, _ := family(b, "qwen3")
	if dir := os.Getenv("TOKENIZER"); dir != "" {
		if tok, err = Open(dir); err != nil {
			b.Fatal(err)
		}
	}
	for _, c := range []struct{ name, text string }{
		{"readme", string(readme)},
		{"one piece", strings.Repeat("a", 20_000)},
		{"chinese", strings.Repeat("若函数在区间上单调递增，则实数的取值范围是多少？", 500)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.text)))
			var ids []uint32
			for b.Loop() {
				ids = tok.Append(ids[:0], c.text)
			}
		})
	}
}
