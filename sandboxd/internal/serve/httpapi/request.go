package httpapi

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/sluice-rl/sluice/sandboxd/api"
)

// errNoCode occurs when a request holds no program: an empty one must be asked for.
var errNoCode = errors.New(`"code" is missing or null: send the program as a string, "" for an empty one`)

// decodeRequest reads a request, and runs nothing that was not sent: a name must be
// written as documented and stand there once, text must be valid UTF-8 without lone
// surrogates, and there must be a program.
func decodeRequest(body []byte) (api.Request, error) {
	var wire struct {
		api.Request
		Code *string `json:"code"`
	}
	if err := strictly(body, &wire); err != nil {
		return api.Request{}, err
	}
	if wire.Code == nil {
		return api.Request{}, errNoCode
	}
	req := wire.Request
	req.Code = *wire.Code
	return req, nil
}

// decodeReserve reads what may come with a reservation.
func decodeReserve(body []byte) (api.ReserveRequest, error) {
	var req api.ReserveRequest
	if len(body) == 0 {
		return req, nil
	}
	if err := strictly(body, &req); err != nil {
		return req, err
	}
	return req, req.Validate()
}

func strictly(body []byte, into any) error {
	err := json.Unmarshal(body, into, json.RejectUnknownMembers(true))
	var semantic *json.SemanticError
	if errors.As(err, &semantic) && errors.Is(semantic.Err, json.ErrUnknownName) {
		return fmt.Errorf("unknown name at %s", semantic.JSONPointer)
	}
	return err
}
