package inference

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
)

var (
	// ErrNoTokenIDs occurs when an answer has text but no token ids: the server does
	// not know return_token_ids. Training on text encoded again would be wrong.
	ErrNoTokenIDs = errors.New("the inference server returned no token ids")
	// ErrAnswer occurs when an answer of status 200 is not what was asked for.
	ErrAnswer = errors.New("unusable answer of the inference server")
	// ErrUnknownModel occurs when the server does not serve the model asked for.
	ErrUnknownModel = errors.New("the inference server does not serve this model")
	// ErrTemplate occurs when a chat template is not one whose glue can be found.
	ErrTemplate = errors.New("chat template not usable")
)

// StatusError occurs when the server answers with a status other than 200.
type StatusError struct {
	Path   string
	Status int
	// Message is the beginning of the body, quoted: it comes from elsewhere.
	Message string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("inference server: %s: %d %s: %s", e.Path, e.Status, http.StatusText(e.Status), e.Message)
}

// Refused says that the request itself is at fault: the same request can never
// succeed. Other statuses speak of the server, its address or credentials.
func (e *StatusError) Refused() bool {
	return e.Status == http.StatusBadRequest || e.Status == http.StatusRequestEntityTooLarge || e.Status == http.StatusUnprocessableEntity
}

// passing says that the same request may succeed later.
func (e *StatusError) passing() bool {
	return e.Status >= 500 || e.Status == http.StatusTooManyRequests || e.Status == http.StatusRequestTimeout
}

func statusError(path string, status int, body []byte) *StatusError {
	const most = 500
	if len(body) > most {
		body = body[:most]
	}
	return &StatusError{Path: path, Status: status, Message: strconv.QuoteToASCII(string(body))}
}
