package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// perEvent is how many tokens of a choice one event brings, as vLLM's --stream-interval has
// it.
const perEvent = 8

// stream is a completion that is sent in pieces, as server-sent events.
type stream struct {
	server    *Server
	whole     completionResponse
	withUsage bool
	// takes is how long sampling it takes.
	takes time.Duration
}

// chunk is one event.
type chunk struct {
	ID            string        `json:"id"`
	Object        string        `json:"object"`
	Created       int64         `json:"created"`
	Model         string        `json:"model"`
	Choices       []chunkChoice `json:"choices"`
	Usage         *usage        `json:"usage,omitempty"`
	PolicyVersion uint32        `json:"policy_version"`
}

type chunkChoice struct {
	completionChoice
	FinishReason *string `json:"finish_reason"`
}

// write sends the events, spread over the time that sampling takes.
func (s *stream) write(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	longest := 0
	for _, c := range s.whole.Choices {
		longest = max(longest, len(c.Logprobs.tokens()), len(c.TokenIDs))
	}
	for from := 0; from == 0 || from < longest; from += perEvent {
		share := float64(min(perEvent, longest-from)) / float64(max(1, longest))
		if err := sleep(r.Context(), time.Duration(float64(s.takes)*share)); err != nil {
			return err
		}
		for _, c := range s.whole.Choices {
			n := max(len(c.Logprobs.tokens()), len(c.TokenIDs))
			if from >= n && from > 0 {
				continue
			}
			piece, err := s.piece(c, from, min(from+perEvent, n), n)
			if err != nil {
				return err
			}
			e := s.event()
			e.Choices = []chunkChoice{piece}
			if err := send(w, e); err != nil {
				return err
			}
		}
	}
	if s.withUsage {
		e := s.event()
		e.Usage = &s.whole.Usage
		if err := send(w, e); err != nil {
			return err
		}
	}
	_, err := fmt.Fprint(w, "data: [DONE]\n\n")
	return err
}

func (s *stream) event() chunk {
	return chunk{
		ID: s.whole.ID, Object: s.whole.Object, Created: s.whole.Created, Model: s.whole.Model, Choices: []chunkChoice{}, PolicyVersion: s.whole.PolicyVersion,
	}
}

// piece is what one event says of a choice: the prompt in the first alone, how it ended in
// the last.
func (s *stream) piece(c completionChoice, from, to, n int) (chunkChoice, error) {
	out := chunkChoice{completionChoice: completionChoice{Index: c.Index}}
	if from == 0 {
		out.PromptTokenIDs = c.PromptTokenIDs
	}
	if to == n {
		out.FinishReason, out.StopReason = &c.FinishReason, c.StopReason
	}
	if c.TokenIDs != nil {
		out.TokenIDs = c.TokenIDs[from:to]
	}
	if l := c.Logprobs; l != nil {
		out.Logprobs = &logprobs{l.TextOffset[from:to], l.TokenLogprobs[from:to], l.Tokens[from:to], l.TopLogprobs[from:to]}
	}
	before, err := s.shown(c, from, n)
	if err != nil {
		return out, err
	}
	now, err := s.shown(c, to, n)
	out.Text = now[len(before):]
	return out, err
}

// shown is the text after so many tokens, without what may belong to a character that is
// not complete.
func (s *stream) shown(c completionChoice, at, n int) (string, error) {
	if at == n || c.TokenIDs == nil {
		return c.Text, nil
	}
	text, err := s.server.tok.Text(c.TokenIDs[:at])
	if err != nil {
		return "", err
	}
	for !strings.HasPrefix(c.Text, text) {
		text = text[:len(text)-1]
	}
	return text, nil
}

// tokens are those that a choice has logprobs of, none where they were not asked for.
func (l *logprobs) tokens() []string {
	if l == nil {
		return nil
	}
	return l.Tokens
}

func send(w http.ResponseWriter, e chunk) error {
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "data: %s\n\n", b); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
}
