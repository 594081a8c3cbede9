package kafka

import (
	"errors"
	"fmt"
)

var (
	// ErrConfig: a configuration cannot work, whatever the brokers do.
	ErrConfig = errors.New("misconfigured for Kafka")
	// ErrFenced: another process took this one's transactional id. There is nothing
	// to do but to stop.
	ErrFenced = errors.New("fenced by another process with the same instance")
	// ErrUnsupported: the brokers lack what the stage needs.
	ErrUnsupported = errors.New("brokers do not support this")
	// ErrTooLarge: an encoded message is larger than max_message_bytes.
	ErrTooLarge = errors.New("message too large")
)

// rejection is an error that gives a record up.
type rejection struct {
	errorType string
	err       error
}

func (r *rejection) Error() string { return r.err.Error() }
func (r *rejection) Unwrap() error { return r.err }

// Reject marks an error as final for the record: it goes to dead-letters at once
// under errorType, a short class such as "refused" or "invalid", and its trajectory
// ends as infra_error. A nil err gives nil.
func Reject(err error, errorType string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("rejected: %w", &rejection{errorType: errorType, err: err})
}
