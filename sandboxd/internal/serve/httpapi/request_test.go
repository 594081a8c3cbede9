package httpapi

import (
	"strings"
	"testing"

	"github.com/sluice-rl/sluice/sandboxd/api"
)

// What was sent runs, or nothing does.
func TestDecodeRequest(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		want       api.Request
		refused    string // part of the reason; "" if it is taken
	}{
		{"a program", `{"code":"print(1)","timeout_ms":5}`, api.Request{Code: "print(1)", TimeoutMS: 5}, ""},
		{"a program of a trajectory", `{"code":"1","trajectory":"a/b~1"}`, api.Request{Code: "1", Trajectory: "a/b~1"}, ""},
		{"the empty program, asked for", `{"code":""}`, api.Request{}, ""},
		{"null for what may be left out", `{"code":"1","image":null,"timeout_ms":null}`, api.Request{Code: "1"}, ""},
		{"escapes", `{"code":"\u00e9\ud83d\ude00\u2028\u0000"}`, api.Request{Code: "é😀\u2028\x00"}, ""},
		{"white space around it", " \n{\"code\":\"1\"}\n ", api.Request{Code: "1"}, ""},
		{"null", `null`, api.Request{}, "code"},
		{"no program", `{}`, api.Request{}, "code"},
		{"a null program", `{"code":null}`, api.Request{}, "code"},
		{"only other names", `{"timeout_ms":5}`, api.Request{}, "code"},
		{"invalid UTF-8", "{\"code\":\"print('\xff')\"}", api.Request{}, "UTF-8"},
		{"invalid UTF-8 in the label", "{\"code\":\"1\",\"label\":\"\xff\"}", api.Request{}, "UTF-8"},
		{"an encoded surrogate", "{\"code\":\"\xed\xa0\x80\"}", api.Request{}, "UTF-8"},
		{"a lone high surrogate", `{"code":"'\ud800'"}`, api.Request{}, "surrogate"},
		{"a lone low surrogate", `{"code":"'\udc00'"}`, api.Request{}, "surrogate"},
		{"surrogates the wrong way round", `{"code":"'\udc00\ud800'"}`, api.Request{}, "surrogate"},
		{"another case", `{"Code":"1"}`, api.Request{}, "Code"},
		{"upper case", `{"CODE":"1"}`, api.Request{}, "CODE"},
		{"another case beside it", `{"code":"1","Image":"bare"}`, api.Request{}, "Image"},
		{"twice", `{"code":"1","code":"2"}`, api.Request{}, "duplicate"},
		{"twice, by an escape", `{"code":"1","c\u006fde":"2"}`, api.Request{}, "duplicate"},
		{"twice, in two cases", `{"code":"1","Code":"2"}`, api.Request{}, "Code"},
		{"another option twice", `{"code":"1","cold":true,"cold":false}`, api.Request{}, "duplicate"},
		{"an unknown name", `{"code":"1","codee":"2"}`, api.Request{}, "codee"},
		{"a number", `{"code":1}`, api.Request{}, "code"},
		{"a list", `["print(1)"]`, api.Request{}, ""},
		{"a string", `"print(1)"`, api.Request{}, ""},
		{"two objects", `{"code":"1"}{"code":"2"}`, api.Request{}, ""},
		{"nothing", ``, api.Request{}, ""},
		{"cut short", `{"code":"1"`, api.Request{}, ""},
		{"a number too large", `{"code":"1","timeout_ms":1e30}`, api.Request{}, "timeout_ms"},
		{"a fraction", `{"code":"1","timeout_ms":1.5}`, api.Request{}, "timeout_ms"},
		{"a number as text", `{"code":"1","timeout_ms":"5"}`, api.Request{}, "timeout_ms"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := decodeRequest([]byte(tt.body))
			taken := tt.want != (api.Request{}) || strings.HasPrefix(tt.name, "the empty")
			switch {
			case taken && (err != nil || got != tt.want):
				t.Errorf("got %+v, %v; want %+v", got, err, tt.want)
			case !taken && (err == nil || !strings.Contains(err.Error(), tt.refused)):
				t.Errorf("got %+v, %v; want a refusal that names %q", got, err, tt.refused)
			}
		})
	}
}

func FuzzDecodeRequest(f *testing.F) {
	for _, body := range []string{`{"code":"1"}`, `{"code":"\ud800"}`, "{\"code\":\"\xff\"}", `null`} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if req, err := decodeRequest(body); err == nil {
			if why := req.Validate(1<<30, 1<<40); why != nil && strings.Contains(why.Error(), "UTF-8") {
				t.Errorf("%q was taken: %v", body, why)
			}
		}
	})
}
