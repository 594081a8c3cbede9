// Package words gives the text of token ids, as an inference server tells it at its
// /detokenize (vLLM's dialect).
//
// Of Words, each id is asked for once and remembered. Where the server is away or does not
// know how, ids have no text: who shows them shows the ids then.
package words

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// patience bounds each question, and all of one Words.
const patience = 5 * time.Second

// most bounds how many ids are remembered.
const most = 200_000

// Server is asked for texts.
type Server struct {
	url, model string
	client     *http.Client

	mu    sync.Mutex
	known map[uint32]string
}

// At is the inference server of a URL. The model's name may be empty.
func At(url, model string) *Server {
	return &Server{url: strings.TrimRight(url, "/") + "/detokenize", model: model, client: &http.Client{}, known: map[uint32]string{}}
}

// Words are the texts of ids, as far as they are known.
func (s *Server) Words(ctx context.Context, ids []uint32) map[uint32]string {
	out := map[uint32]string{}
	missing := map[uint32]bool{}
	s.mu.Lock()
	for _, id := range ids {
		if text, ok := s.known[id]; ok {
			out[id] = text
		} else {
			missing[id] = true
		}
	}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(4)
	for id := range missing {
		g.Go(func() error {
			text, err := s.Text(ctx, []uint32{id})
			if err != nil {
				return err // and the others are not asked for either
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.known) < most {
				s.known[id] = text
			}
			out[id] = text
			return nil
		})
	}
	_ = g.Wait() // what is not known is not in out
	return out
}

// Text is the text of tokens that stand one behind the other.
func (s *Server) Text(ctx context.Context, tokens []uint32) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	said := map[string]any{"tokens": tokens}
	if s.model != "" {
		said["model"] = s.model
	}
	body, err := json.Marshal(said)
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("detokenize: HTTP %d", resp.StatusCode)
	}
	var answer struct {
		Prompt string `json:"prompt"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 16<<20)).Decode(&answer); err != nil {
		return "", fmt.Errorf("detokenize: %w", err)
	}
	return answer.Prompt, nil
}
