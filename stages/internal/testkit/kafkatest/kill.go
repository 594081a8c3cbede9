package kafkatest

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/internal/stage"
)

// errGone: the process was killed; nothing it does reaches the broker.
var errGone = errors.New("process is gone")

// NeedsVirtualLocks skips a test that cannot run on the Kafka client as it is built by
// default: it holds a mutex across sleeps when a transaction ends, which stops the clock
// of a bubble.
func NeedsVirtualLocks(t *testing.T) {
	t.Helper()
	if !virtual {
		t.Skip("needs `go test -tags synctests`: the Kafka client's mutexes stop a bubble's clock otherwise")
	}
}

// Lifeline is the network of one process. Until it is cut it delays what is written by
// a little, so that kills fall between requests of one transaction.
type Lifeline struct {
	dialer func(ctx context.Context, network, host string) (net.Conn, error)

	mu    sync.Mutex
	rng   *rand.Rand
	gone  bool
	conns []net.Conn
}

// Mortal gives a stage's environment a lifeline. seed draws its delays.
func (w *World) Mortal(env *stage.Env, seed uint64) *Lifeline {
	l := &Lifeline{dialer: w.dialer, rng: rand.New(rand.NewPCG(seed, 0))}
	env.Kafka.Dialer = l.dial
	return l
}

func (l *Lifeline) dial(ctx context.Context, network, host string) (net.Conn, error) {
	c, err := l.dialer(ctx, network, host)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		c.Close()
		return nil, errGone
	}
	l.conns = append(l.conns, c)
	return &mortalConn{c, l}, nil
}

// maxDelay bounds the delay of one write.
const maxDelay = 5 * time.Millisecond

type mortalConn struct {
	net.Conn
	line *Lifeline
}

func (c *mortalConn) Write(b []byte) (int, error) {
	c.line.mu.Lock()
	d, gone := time.Duration(c.line.rng.Int64N(int64(maxDelay))), c.line.gone
	c.line.mu.Unlock()
	if gone {
		return 0, errGone
	}
	time.Sleep(d)
	return c.Conn.Write(b)
}

// Cut makes the process vanish as kill -9 would: what it had not written is never
// written, and the brokers hear no goodbye.
func (l *Lifeline) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone = true
	for _, c := range l.conns {
		c.Close()
	}
}

// Kill cuts a running stage's lifeline and ends what is left of it.
func (r *Running) Kill(l *Lifeline) {
	l.Cut()
	r.cancel()
	<-r.done
}

const settling = 3 * time.Minute

// Ordeal gives a stage its records in order while it is killed again and again in
// mid-work, and comes back with a last life of it that works undisturbed.
func (w *World) Ordeal(rng *rand.Rand, name string, run func(context.Context, *stage.Env) error, records []kafka.Output) *Running {
	w.T.Helper()
	start := func() (*Running, *Lifeline) {
		env := w.Env(name)
		env.Kafka.Instance = name + "-0"
		line := w.Mortal(env, rng.Uint64())
		return w.Start(run, env), line
	}
	for len(records) > 0 {
		life, line := start()
		// Long enough for the group to settle after the last death: kfake keeps a
		// member for ever that dies while its JoinGroup waits for an answer.
		time.Sleep(settling)
		for range 1 + rng.IntN(4) {
			n := min(len(records), 1+rng.IntN(20))
			w.Put(records[:n]...)
			records = records[n:]
			time.Sleep(time.Duration(rng.Int64N(int64(60 * time.Millisecond))))
		}
		life.Kill(line)
	}
	last, _ := start()
	return last
}
