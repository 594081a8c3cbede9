package observation

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ErrToken occurs when an added token cannot be defused by putting a space into it: it
// holds white space or is a single character.
var ErrToken = errors.New("token cannot be defused")

// Always are the tokens that are defused under every tokenizer: with one of them a
// program could end its turn and speak as someone else.
func Always() []string {
	return []string{"<|im_start|>", "<|im_end|>", "<tool_response>", "</tool_response>"}
}

// Qwen are the added tokens of the tokenizers of Qwen3 and Qwen3.5.
func Qwen() []string {
	return []string{
		"<|endoftext|>", "<|im_start|>", "<|im_end|>",
		"<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>", "<|box_end|>", "<|quad_start|>", "<|quad_end|>",
		"<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>",
		"<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>",
		"<|repo_name|>", "<|file_sep|>", "<tool_response>", "</tool_response>", "<think>", "</think>",
		"<|audio_start|>", "<|audio_end|>", "<|audio_pad|>",
		"<tts_pad>", "<tts_text_bos>", "<tts_text_eod>", "<tts_text_bos_single>",
	}
}

// Defuser makes texts in which no added token occurs. Safe for concurrent use.
type Defuser struct {
	shapes *strings.Replacer
	tokens []string
}

// NewDefuser takes the tokenizer's added tokens; Always come on top.
func NewDefuser(tokens []string) (*Defuser, error) {
	d := &Defuser{}
	var pairs []string
	for _, t := range append(Always(), tokens...) {
		if utf8.RuneCountInString(t) < 2 || strings.ContainsFunc(t, unicode.IsSpace) {
			return nil, fmt.Errorf("%w: %q: leave it out, the space that defuses a token would not break it", ErrToken, t)
		}
		d.tokens = append(d.tokens, t)
		pairs = append(pairs, t, spaced(t))
	}
	d.shapes = strings.NewReplacer(pairs...)
	return d, nil
}

// spaced is a token as the policy sees it: <|name|> as "< name >", <name> as
// "< name >", </name> as "< /name>", anything else with a space after its first
// character.
func spaced(t string) string {
	inner, angled := strings.CutPrefix(t, "<")
	if inner, end := strings.CutSuffix(inner, ">"); angled && end {
		if piped, ok := strings.CutPrefix(inner, "|"); ok {
			return "< " + strings.TrimSuffix(piped, "|") + " >"
		}
		if strings.HasPrefix(inner, "/") {
			return "< " + inner + ">"
		}
		return "< " + inner + " >"
	}
	_, first := utf8.DecodeRuneInString(t)
	return t[:first] + " " + t[first:]
}

// Defuse returns s without any added token in it.
func (d *Defuser) Defuse(s string) string {
	s = d.shapes.Replace(s)
	if !d.contains(s) {
		return s
	}
	// Tokens that overlapped are left. A space after the first character of every
	// place where one begins breaks all of them at once, and makes no new one: no
	// token holds a space.
	var b strings.Builder
	for i, r := range s {
		b.WriteRune(r)
		if d.begins(s[i:]) {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

func (d *Defuser) contains(s string) bool {
	for _, t := range d.tokens {
		if strings.Contains(s, t) {
			return true
		}
	}
	return false
}

func (d *Defuser) begins(s string) bool {
	for _, t := range d.tokens {
		if strings.HasPrefix(s, t) {
			return true
		}
	}
	return false
}
