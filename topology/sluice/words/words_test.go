package words

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake answers as an inference server does: each id's text is "<id>". It does not know
// those from 100 on.
func fake(t *testing.T) (url string, asked func() []string) {
	t.Helper()
	var mu sync.Mutex
	var bodies []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Model  string   `json:"model"`
			Tokens []uint32 `json:"tokens"`
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.URL.Path != "/detokenize" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		var text strings.Builder
		for _, id := range in.Tokens {
			if id >= 100 {
				http.Error(w, "unknown", http.StatusBadRequest)
				return
			}
			fmt.Fprintf(&text, "<%d>", id)
		}
		mu.Lock()
		bodies = append(bodies, in.Model+text.String())
		mu.Unlock()
		_ = json.NewEncoder(w).Encode(map[string]string{"prompt": text.String()})
	}))
	t.Cleanup(s.Close)
	return s.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return bodies
	}
}

func TestText(t *testing.T) {
	url, asked := fake(t)
	s := At(url+"/", "m")
	text, err := s.Text(t.Context(), []uint32{1, 2})
	if err != nil || text != "<1><2>" || asked()[0] != "m<1><2>" {
		t.Errorf("%q, %v, asked %q", text, err, asked())
	}
	if _, err := s.Text(t.Context(), []uint32{100}); err == nil || !strings.Contains(err.Error(), "400") {
		t.Errorf("an answer of status 400: %v", err)
	}
	s.client.CloseIdleConnections()
}

func TestWordsAreAskedForOnce(t *testing.T) {
	url, asked := fake(t)
	s := At(url, "")
	want := map[uint32]string{1: "<1>", 2: "<2>"}
	for range 2 {
		if got := s.Words(t.Context(), []uint32{1, 2, 1}); !maps.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	if n := len(asked()); n != 2 {
		t.Errorf("asked %d times, want once for each", n)
	}
	s.client.CloseIdleConnections()
}

// What cannot be told has no text; what is known already has it all the same.
func TestWordsWithoutAServer(t *testing.T) {
	url, _ := fake(t)
	s := At(url, "")
	s.Words(t.Context(), []uint32{1})
	if got := s.Words(t.Context(), []uint32{1, 100}); !maps.Equal(got, map[uint32]string{1: "<1>"}) {
		t.Errorf("got %v", got)
	}
	s.client.CloseIdleConnections()
	if got := At("http://127.0.0.1:1", "").Words(t.Context(), []uint32{1}); len(got) != 0 {
		t.Errorf("of nobody: %v", got)
	}
}
