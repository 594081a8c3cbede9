package inference

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/sluice-rl/sluice/stages/sampler/rollout"
)

// Class is what an answer of a server means for the turn that asked. What is on no list
// here is Trouble: the server's, never the policy's.
type Class int

// The classes.
const (
	// Ending: the policy stopped, or all tokens that were asked for were sampled.
	Ending Class = iota + 1
	// Abort: broken off for a weight update; the turn goes on from the tokens it has.
	Abort
	// Absent: the server did not take the request on. The same request is made again
	// once it does, however long that takes; it counts as no attempt.
	Absent
	// Trouble: the server took the request on and gave nothing usable. It is made again
	// within the turn's budget.
	Trouble
	// Refusal: the server will not take this request, whoever asks and when.
	Refusal
	// RefusalForAll: what the server refuses is not of this request: the address, the
	// key, the model, an option that it was started without.
	RefusalForAll
)

var classNames = map[Class]string{
	Ending: "ending", Abort: "abort", Absent: "absent", Trouble: "trouble", Refusal: "refusal", RefusalForAll: "refusal_for_all",
}

// String is the class as metrics spell it.
func (c Class) String() string { return classNames[c] }

// finishes is every word for the end of a generation that we understand, of all
// dialects.
var finishes = map[string]struct {
	class  Class
	finish rollout.Finish
}{
	"stop":   {Ending, rollout.Stopped},
	"length": {Ending, rollout.Length},
	"abort":  {Abort, rollout.Aborted},
	// llama-server's stop_type.
	"eos":   {Ending, rollout.Stopped},
	"limit": {Ending, rollout.Length},
}

// finishOf reads a server's word for the end of a generation.
func finishOf(word string) (rollout.Finish, error) {
	f, ok := finishes[word]
	if !ok {
		return 0, fmt.Errorf("%w: finish reason %.40q is none that this build knows", ErrAnswer, word)
	}
	return f.finish, nil
}

// statuses is every status that we understand, 200 apart.
var statuses = map[int]Class{
	http.StatusBadRequest:            Refusal,
	http.StatusRequestEntityTooLarge: Refusal,
	http.StatusUnprocessableEntity:   Refusal,

	http.StatusUnauthorized:     RefusalForAll,
	http.StatusForbidden:        RefusalForAll,
	http.StatusNotFound:         RefusalForAll,
	http.StatusMethodNotAllowed: RefusalForAll,
	http.StatusNotImplemented:   RefusalForAll,

	http.StatusRequestTimeout:      Absent,
	http.StatusTooEarly:            Absent,
	http.StatusTooManyRequests:     Absent,
	http.StatusBadGateway:          Absent,
	http.StatusServiceUnavailable:  Absent,
	http.StatusInternalServerError: Trouble,
	http.StatusGatewayTimeout:      Trouble,
}

// ClassOf says what an error of one attempt means.
func ClassOf(err error) Class {
	var status *StatusError
	switch {
	case errors.As(err, &status):
		if status.stillRunning() {
			return Trouble
		}
		if c, ok := statuses[status.Status]; ok {
			return c
		}
		return Trouble
	case errors.Is(err, ErrNoTokenIDs), errors.Is(err, ErrUnknownModel), errors.Is(err, ErrNoTemplate), errors.Is(err, ErrDialect):
		return RefusalForAll
	case errors.Is(err, ErrAnswer), errors.Is(err, ErrCut), errors.Is(err, errTakenOn):
		return Trouble
	}
	// No connection, or none that lasted until the request was written.
	return Absent
}

// stillRunning: the server has a request of this id. Releases of vLLM before ids got a
// random suffix answer so while they work on an attempt whose connection was lost.
func (e *StatusError) stillRunning() bool {
	return e.Status == http.StatusBadRequest && strings.Contains(strings.ToLower(e.Message), "already running")
}
