package codec

import (
	"errors"
	"testing"
)

// What the protobuf library says ends in dead letters, where people search for it.
func TestErrorsOfProtobufHavePlainSpaces(t *testing.T) {
	cause := errors.New("proto:\u00a0cannot parse invalid wire-format data")
	err := error(plainSpaces{cause})
	if got, want := err.Error(), "proto: cannot parse invalid wire-format data"; got != want {
		t.Errorf("says %q, want %q", got, want)
	}
	if !errors.Is(err, cause) {
		t.Error("the cause is gone from the chain")
	}
}
