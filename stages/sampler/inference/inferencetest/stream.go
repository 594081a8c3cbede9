package inferencetest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/sluice-rl/sluice/stages/sampler/rollout/rollouttest"
)

// writer is an answer in the making: a body, or the events of a stream.
type writer struct {
	*httptest.ResponseRecorder
	events []event
}

// event is one event of a stream.
type event struct {
	data any
	// tokens is how many tokens of the longest choice have been sampled by then.
	tokens int
}

// piece is what an event says of a choice.
type piece struct {
	index    int
	from, to int
	// text is what is new of it, all what it is by then.
	text, all string
	last      bool
}

// pieces cuts completions as they are sampled side by side.
func pieces(size int, all []sampled) []piece {
	size = max(1, size)
	var out []piece
	shown := make([][]int, len(all))
	for i, s := range all {
		shown[i] = s.shown()
	}
	for from := 0; ; from += size {
		more := false
		for i, s := range all {
			n := len(s.tokens)
			if from >= n && (from > 0 || n > 0) {
				continue
			}
			to := min(from+size, n)
			text := s.text[:shown[i][to]]
			out = append(out, piece{index: i, from: from, to: to, text: text[shown[i][from]:], all: text, last: to == n})
			more = more || to < n
		}
		if !more {
			return out
		}
	}
}

// shown is how much of the text a server has shown after so many tokens: it keeps back what
// may still become a special token.
func (s sampled) shown() []int {
	n := len(s.tokens)
	lengths := make([]int, n+1)
	lengths[n] = len(s.text)
	for i := n - 1; i >= 0; i-- {
		if s.text == s.raw {
			lengths[i] = i
			continue
		}
		text := rollouttest.WithoutSpecial(s.raw[:i])
		for !strings.HasPrefix(s.text, text) {
			text = text[:len(text)-1]
		}
		lengths[i] = min(len(text), lengths[i+1])
	}
	return lengths
}

// send makes a stream the answer.
func send(w http.ResponseWriter, events []event) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.(*writer).events = events
}

// stream writes events at the times at which they are due.
func (f *Fake) stream(ctx context.Context, events []event) io.ReadCloser {
	f.mu.Lock()
	cut := -1
	if f.CutTimes > 0 {
		f.CutTimes--
		cut = f.CutAfter
	}
	clean, message := f.CutClean, f.CutMessage
	f.mu.Unlock()
	r, w := io.Pipe()
	go func() {
		at := 0
		for _, e := range events {
			if cut >= 0 && e.tokens > cut {
				switch {
				case message != "":
					_, _ = fmt.Fprintf(w, "data: {\"error\": {\"message\": %q, \"code\": 500}}\n\ndata: [DONE]\n\n", message)
					_ = w.Close()
				case clean:
					_, _ = io.WriteString(w, "data: {\"choices\": [{\"ind")
					_ = w.Close()
				default:
					_ = w.CloseWithError(ErrCut)
				}
				return
			}
			if pause := time.Duration(e.tokens-at) * f.PerToken; pause > 0 {
				select {
				case <-time.After(pause):
				case <-ctx.Done():
					_ = w.CloseWithError(ctx.Err())
					return
				}
				at = e.tokens
			}
			text, ok := e.data.(string)
			if !ok {
				b, err := json.Marshal(e.data)
				if err != nil {
					_ = w.CloseWithError(err)
					return
				}
				text = string(b)
			}
			if _, err := fmt.Fprintf(w, "data: %s\n\n", text); err != nil {
				return
			}
		}
		_ = w.Close()
	}()
	stop := context.AfterFunc(ctx, func() { _ = w.CloseWithError(ctx.Err()) })
	return &body{r, stop}
}

// body ends its stream when it is closed.
type body struct {
	*io.PipeReader
	stop func() bool
}

func (b *body) Close() error {
	b.stop()
	return b.PipeReader.Close()
}

// finished says that a stream has ended.
func finished(events []event) []event { return append(events, event{"[DONE]", last(events)}) }

func last(events []event) int {
	if len(events) == 0 {
		return 0
	}
	return events[len(events)-1].tokens
}

// wordOf is a finish reason in a stream: null while there is more to come.
func (p piece) wordOf(s sampled) any {
	if !p.last {
		return nil
	}
	return s.word()
}

// idsOf are the stated ids of a piece.
func (p piece) idsOf(s sampled) []int64 {
	return s.ids[min(p.from, len(s.ids)):min(p.to, len(s.ids))]
}

func (p piece) logprobsOf(s sampled) []json.RawMessage {
	return s.logprobs[min(p.from, len(s.logprobs)):min(p.to, len(s.logprobs))]
}
