package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/stages/ppo-batcher/step"
)

// errState: a changelog entry is not one of this stage.
var errState = errors.New("unreadable state of ppo-batcher")

// entry is what the changelog says of a step, under the key "run.incarnation/step":
// "done", or "open from OFFSET", the offset in grouped of its first record.
type entry struct {
	done bool
	from int64
}

const openFrom = "open from "

func (e entry) encode() []byte {
	if e.done {
		return []byte("done")
	}
	return strconv.AppendInt([]byte(openFrom), e.from, 10)
}

func decode(key string, value []byte) (step.ID, entry, error) {
	id, err := parseKey(key)
	if err != nil {
		return step.ID{}, entry{}, err
	}
	if string(value) == "done" {
		return id, entry{done: true}, nil
	}
	offset, ok := strings.CutPrefix(string(value), openFrom)
	from, err := strconv.ParseInt(offset, 10, 64)
	if !ok || err != nil || from < 0 {
		return step.ID{}, entry{}, fmt.Errorf("%w: step %s is %.60q, want \"done\" or \"%sOFFSET\"", errState, id, value, openFrom)
	}
	return id, entry{from: from}, nil
}

func parseKey(key string) (step.ID, error) {
	p, err := identity.ParsePlace(key + "/0/0")
	if err != nil {
		return step.ID{}, fmt.Errorf("%w: key %.150q, want run.incarnation/step", errState, key)
	}
	return step.IDOf(p.Group), nil
}
