package main

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/api"
	"github.com/sluice-rl/sluice/sandboxd/client"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
)

// placesPart is what the executor calls its places in its readiness. It is not the
// backend: sandboxd is there, only others have it.
const placesPart = "sandbox places"

const (
	// firstPause and mostPause bound the time between two attempts to get a place: after
	// a refusal, and after an idle one was taken away for somebody else.
	firstPause, mostPause = 250 * time.Millisecond, 5 * time.Second
	// withoutPlace is for how long a process may be without a place before it is not
	// ready; withoutAnswer the same for one whose calls all stand in sandboxd's queue
	// or, which looks alike from here, run in it.
	withoutPlace, withoutAnswer = 10 * time.Second, 45 * time.Second
)

// places are what the slots have reserved at sandboxd, and what is known of sandboxd.
type places struct {
	sandboxes sandboxes
	log       *slog.Logger
	// ready reports the readiness of a part.
	ready   func(part string, err error)
	metrics *metrics
	// process tells this process's places from those of others, at sandboxd. A slot
	// whose connection broke is given back what sandboxd still holds for it, instead
	// of waiting behind itself.
	process string

	mu   sync.Mutex
	held map[int]*place
	// lapsed counts reservations in a row that were lost with nothing run in them.
	lapsed int
	// asking counts slots that wait for a reservation, waiting calls in hand that wait to
	// ask again, and direct ones that were sent without a reservation.
	asking, waiting, direct int
	// since is when the process was last seen to have a place, or to need none.
	since time.Time
	// down: sandboxd is away, and it was logged.
	down bool
	// refusal is the last answer of a sandboxd that had no place.
	refusal error
	without bool
}

func newPlaces(boxes sandboxes, log *slog.Logger, m *metrics, ready func(string, error)) *places {
	return &places{sandboxes: boxes, log: log, ready: ready, metrics: m, process: crand.Text(), held: map[int]*place{}, since: time.Now()}
}

// place is a reservation of one slot.
type place struct {
	places *places
	slot   int
	reservation
	used bool
}

// Release gives the reservation back.
func (p *place) Release() {
	p.places.mu.Lock()
	delete(p.places.held, p.slot)
	select {
	case <-p.Lost():
		if !p.used {
			p.places.lapsed++
		}
	default:
	}
	p.places.mu.Unlock()
	p.reservation.Release()
}

// reserve is what the Kafka side calls before a slot asks for a record. It fails only if ctx
// ends: being busy is no failure, and an outage is said once for all slots.
func (ps *places) reserve(ctx context.Context, slot int) (kafka.Place, error) {
	ps.count(&ps.asking, 1)
	defer ps.count(&ps.asking, -1)
	if !pause(ctx, nil, ps.lapse()) {
		return nil, ctx.Err()
	}
	for wait := firstPause; ; wait = min(2*wait, mostPause) {
		r, err := ps.sandboxes.Reserve(ctx, fmt.Sprintf("%s/%d", ps.process, slot))
		if err == nil {
			p := &place{places: ps, slot: slot, reservation: r}
			ps.mu.Lock()
			ps.held[slot] = p
			ps.mu.Unlock()
			ps.answered(nil)
			return p, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if !pause(ctx, nil, max(ps.answered(err), wait)) {
			return nil, ctx.Err()
		}
	}
}

// lapse is how long to leave sandboxd's places to others: longer each time that one was
// taken away while nothing ran in it.
func (ps *places) lapse() time.Duration {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.lapsed == 0 {
		return 0
	}
	d := min(firstPause<<min(ps.lapsed-1, 10), mostPause)
	return d - time.Duration(rand.Int64N(int64(d/4)))
}

// of is the reservation of a slot whose record is in hand, nil if it was lost.
func (ps *places) of(slot int) reservation {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.lapsed = 0 // there is work
	p := ps.held[slot]
	if p == nil {
		return nil
	}
	select {
	case <-p.Lost():
		return nil
	default:
		p.used = true
		return p.reservation
	}
}

// answered notes what an attempt to get a place or to run a program came to, and returns
// for how long sandboxd asks to be left alone.
func (ps *places) answered(err error) time.Duration {
	var busy *client.BusyError
	isBusy := errors.As(err, &busy)
	full := isBusy && busy.Code == api.CodeBusy
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if err == nil {
		ps.since, ps.refusal = time.Now(), nil
	}
	if full {
		ps.refusal = err
	}
	switch away := err != nil && !full; {
	case away && !ps.down:
		ps.down = true
		ps.log.Warn("sandboxd takes no programs: waiting for it", "error", err)
		ps.ready(readyPart, err)
	case !away && ps.down:
		ps.down = false
		ps.log.Info("sandboxd takes programs again")
		ps.ready(readyPart, nil)
	}
	if isBusy {
		return busy.RetryAfter
	}
	return 0
}

// count changes how many slots are in one of the states.
func (ps *places) count(n *int, by int) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	*n += by
	ps.metrics.without(ps.asking, ps.waiting+ps.direct)
}

// watch reports whether the process has a place, until ctx ends.
func (ps *places) watch(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			ps.tell()
		}
	}
}

func (ps *places) tell() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if len(ps.held) > 0 || ps.asking+ps.waiting+ps.direct == 0 {
		ps.since = time.Now()
	}
	bound := withoutPlace
	if ps.direct > 0 {
		bound = withoutAnswer
	}
	lasted := time.Since(ps.since)
	without := lasted > bound && !ps.down // away is told elsewhere
	if without {
		err := fmt.Errorf("no sandbox for %v: others hold all that sandboxd has (%d calls in hand wait)", lasted.Round(time.Second), ps.waiting+ps.direct)
		if ps.refusal != nil {
			err = fmt.Errorf("%w; its answer: %w", err, ps.refusal)
		}
		if !ps.without {
			ps.log.Warn("this process has no place at sandboxd", "error", err)
		}
		ps.ready(placesPart, err)
	} else if ps.without {
		ps.ready(placesPart, nil)
	}
	ps.without = without
}

// pause waits; false if ctx or stop ended first. A nil stop never ends.
func pause(ctx context.Context, stop <-chan struct{}, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
	case <-stop:
	}
	return false
}
