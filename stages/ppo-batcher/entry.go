package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/stages/ppo-batcher/step"
)

// errState: a changelog entry is not one of this stage.
var errState = errors.New("unreadable state of ppo-batcher")

// entry is what the changelog says of a step, under the key "run.incarnation/step":
// "open from OFFSET", the offset in grouped of its first record; "done", of a step that
// had nothing but evaluation; or "batched at MILLISECONDS".
type entry struct {
	done bool
	from int64
	// batched is when a step that is done was batched.
	batched time.Time
}

const (
	openFrom  = "open from "
	batchedAt = "batched at "
)

func (e entry) encode() []byte {
	switch {
	case e.done && e.batched.IsZero():
		return []byte("done")
	case e.done:
		return strconv.AppendInt([]byte(batchedAt), e.batched.UnixMilli(), 10)
	}
	return strconv.AppendInt([]byte(openFrom), e.from, 10)
}

func decode(key string, value []byte) (step.ID, entry, error) {
	id, err := parseKey(key)
	if err != nil {
		return step.ID{}, entry{}, err
	}
	text := string(value)
	if text == "done" {
		return id, entry{done: true}, nil
	}
	if ms, ok := strings.CutPrefix(text, batchedAt); ok {
		if at, err := strconv.ParseInt(ms, 10, 64); err == nil {
			return id, entry{done: true, batched: time.UnixMilli(at)}, nil
		}
	}
	offset, ok := strings.CutPrefix(text, openFrom)
	from, err := strconv.ParseInt(offset, 10, 64)
	if !ok || err != nil || from < 0 {
		return step.ID{}, entry{}, fmt.Errorf("%w: step %s is %.60q, want \"done\", \"%sMILLISECONDS\" or \"%sOFFSET\"", errState, id, value, batchedAt, openFrom)
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
