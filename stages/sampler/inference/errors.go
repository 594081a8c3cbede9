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
	// ErrNoTemplate occurs when the server does not render conversations.
	ErrNoTemplate = errors.New("the inference server does not render conversations")
	// ErrDialect occurs when a server speaks no dialect that gives token ids.
	ErrDialect = errors.New("the inference server speaks no usable dialect")
	// ErrStopping occurs when a request is given up because the process stops.
	ErrStopping = errors.New("stopping")

	// ErrCut occurs when a stream breaks off: what it brought until then counts.
	ErrCut = errors.New("the stream broke off")

	// errTakenOn: the server had the whole request before the attempt failed.
	errTakenOn = errors.New("the server had the request")
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

func statusError(path string, status int, body []byte) *StatusError {
	const most = 500
	if len(body) > most {
		body = body[:most]
	}
	return &StatusError{Path: path, Status: status, Message: strconv.QuoteToASCII(string(body))}
}

// SpentError occurs when a turn's budget of attempts or time is used up.
type SpentError struct {
	Attempts int
	Last     error
}

func (e *SpentError) Error() string {
	return fmt.Sprintf("given up after %d attempts: %v", e.Attempts, e.Last)
}

func (e *SpentError) Unwrap() error { return e.Last }

// RefusedError occurs when the server refuses one request and takes others.
type RefusedError struct{ Err error }

func (e *RefusedError) Error() string { return "refused: " + e.Err.Error() }
func (e *RefusedError) Unwrap() error { return e.Err }

// FatalError occurs when the server refused everybody, so often and for so long that no
// more work should be tried on it.
type FatalError struct {
	URL    string
	InARow int
	Err    error
}

func (e *FatalError) Error() string {
	return fmt.Sprintf("%s gave nothing usable to %d requests in a row, the last: %v", e.URL, e.InARow, e.Err)
}

func (e *FatalError) Unwrap() error { return e.Err }
