package ui

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-rl/sluice/topology/sluice/ui/ask"
	"github.com/sluice-rl/sluice/topology/sluice/ui/live"
)

// problem answers with an error that a page can show: its class, and what to do.
func problem(w http.ResponseWriter, status int, kind, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"kind": kind, "error": text})
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// fail answers with the class of an error.
func (s *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, kind := http.StatusInternalServerError, "failed"
	switch {
	case errors.Is(err, context.Canceled) && r.Context().Err() != nil:
		return // nobody waits for it any more
	case errors.Is(err, ask.ErrUnknown):
		status, kind = http.StatusBadRequest, "unknown"
	case errors.Is(err, ask.ErrRefused):
		status, kind = http.StatusUnprocessableEntity, "refused"
	case errors.Is(err, ask.ErrAway):
		status, kind = http.StatusBadGateway, "clickhouse"
	case errors.Is(err, ask.ErrBusy):
		status, kind = http.StatusServiceUnavailable, "busy"
	}
	s.Log.Debug("a question failed", "path", r.URL.Path, "kind", kind, "error", err)
	problem(w, status, kind, err.Error())
}

func (s *server) about(w http.ResponseWriter, r *http.Request) {
	said := map[string]any{"version": s.Version, "kafka": s.Live != nil, "words": s.Words != nil, "now": time.Now().UTC()}
	if err := s.Ask.Ping(r.Context()); err != nil {
		said["clickhouse"] = err.Error()
	} else if own, why := s.Ask.Own(r.Context()); !own {
		said["no_sql"] = why
	}
	answer(w, said)
}

func (s *server) question(w http.ResponseWriter, r *http.Request) {
	t, err := s.Ask.Named(r.Context(), r.PathValue("name"), r.URL.Query())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	answer(w, t)
}

// mostSQL is how long a statement may be, in bytes.
const mostSQL = 100_000

func (s *server) statement(w http.ResponseWriter, r *http.Request) {
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); kind != "application/json" {
		problem(w, http.StatusUnsupportedMediaType, "unknown", "want application/json")
		return
	}
	var asked struct {
		SQL string `json:"sql"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostSQL)).Decode(&asked); err != nil {
		problem(w, http.StatusBadRequest, "unknown", "the statement cannot be read: "+err.Error())
		return
	}
	t, err := s.Ask.Statement(r.Context(), asked.SQL)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	answer(w, t)
}

func (s *server) live(w http.ResponseWriter, r *http.Request) {
	if s.Live == nil {
		problem(w, http.StatusNotFound, "no_kafka", "these pages were started without Kafka")
		return
	}
	now, err := s.Live.Look(r.Context())
	if err != nil {
		problem(w, http.StatusBadGateway, "kafka", err.Error())
		return
	}
	answer(w, now)
}

func (s *server) record(w http.ResponseWriter, r *http.Request) {
	if s.Live == nil {
		problem(w, http.StatusNotFound, "no_kafka", "these pages were started without Kafka")
		return
	}
	q := r.URL.Query()
	partition, err1 := strconv.ParseInt(q.Get("partition"), 10, 32)
	offset, err2 := strconv.ParseInt(q.Get("offset"), 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		problem(w, http.StatusBadRequest, "unknown", err.Error())
		return
	}
	t, err := s.Live.Trajectory(r.Context(), q.Get("topic"), int32(partition), offset)
	if errors.Is(err, live.ErrGone) { // retention takes records: that is no failure
		answer(w, map[string]string{"gone": err.Error()})
		return
	}
	if err != nil {
		problem(w, http.StatusBadGateway, "kafka", err.Error())
		return
	}
	answer(w, t)
}

// mostWords bounds the tokens whose text is asked for at once.
const mostWords = 1000

func (s *server) words(w http.ResponseWriter, r *http.Request) {
	if s.Words == nil {
		problem(w, http.StatusNotFound, "no_words", "these pages know no tokenizer: start sluice ui with --inference-url")
		return
	}
	var ids []uint32
	for text := range strings.SplitSeq(r.URL.Query().Get("ids"), ",") {
		id, err := strconv.ParseUint(text, 10, 32)
		if err != nil || len(ids) == mostWords {
			problem(w, http.StatusBadRequest, "unknown", "want up to 1000 token ids, commas between them")
			return
		}
		ids = append(ids, uint32(id))
	}
	answer(w, s.Words.Words(r.Context(), ids))
}
