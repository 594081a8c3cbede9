package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sluice-rl/sluice/stages/internal/kafka/hanging"
	"github.com/sluice-rl/sluice/stages/internal/status"
)

const (
	// lookEvery is how often a keyed stage looks for transactions that hang.
	lookEvery = 10 * time.Second
	// endPatience bounds the ending of one of them.
	endPatience = 30 * time.Second
	// abortSlack is what brokers may take beyond a transaction's time-out to abort it.
	abortSlack = 15 * time.Second
	// noteHanging names them in the stage's status.
	noteHanging = "transactions"
)

// errOwnHangs: a transaction of this process hangs, and only its next client may end it.
var errOwnHangs = errors.New("a transaction of this process is held for complete and still open")

// transactions looks after a keyed stage's transactions that their coordinator holds for
// complete and that are open on a partition for ever: see package hanging. It ends those
// of this process between two of its clients, and those of dead ones of its stage at any
// time. A process of the group that is alive does so itself.
type transactions struct {
	cluster ClusterConfig
	cl      *kgo.Client
	log     *slog.Logger
	metrics *metrics
	timeout time.Duration
	// id is this process's transactional id; all of the stage begin with prefix.
	id, prefix string
	clientID   func(id string) string
	group      string
	topics     []string
	// unverified: a connection was lost since own transactions were looked at.
	unverified atomic.Bool
	// hidden: where transactions are open may not be seen. sweep: offsets have been
	// unstable for longer than any transaction may take.
	hidden, sweep atomic.Bool
	wake          chan struct{}

	mu sync.Mutex
	// startOver ends the session.
	startOver context.CancelCauseFunc
}

func (k *keyed) newTransactions() (*transactions, error) {
	c := k.cfg.Cluster
	// Its client is none of the parts of the work: theirs say what is wrong with the brokers.
	quiet := c
	quiet.Ready, quiet.Begun = nil, nil
	cl, _, err := quiet.dial(k.cfg.Stage, "transactions", hanging.ClientOptions()...)
	if err != nil {
		return nil, err
	}
	prefix := c.name(k.cfg.Stage) + "-"
	topics := append([]string{hanging.OffsetsTopic, c.name(k.changelog)}, c.names(k.stage.Writes)...)
	return &transactions{
		cluster: c, cl: cl, log: k.log, metrics: k.metrics, timeout: k.cfg.TransactionTimeout,
		id: prefix + c.Instance, prefix: prefix, group: c.name(k.stage.Group), topics: topics,
		clientID: func(id string) string { return k.cfg.Stage + "-" + strings.TrimPrefix(id, prefix) },
		wake:     make(chan struct{}, 1),
	}, nil
}

// watch looks again and again until ctx ends.
func (t *transactions) watch(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-t.wake:
		}
		bounded, cancel := context.WithTimeout(ctx, endPatience+lookEvery)
		if err := t.look(bounded, false); err != nil && ctx.Err() == nil {
			t.log.Debug("cannot look for transactions that hang", "error", err)
		}
		cancel()
	}
}

// lookNow makes watch look at once.
func (t *transactions) lookNow() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// own says how to end the session when a transaction of its own hangs.
func (t *transactions) own(startOver context.CancelCauseFunc) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.startOver = startOver
}

// claim takes this process's transactional id over from its holder before: what
// hangs is ended as its coordinator had decided, what is open is aborted. It must come
// before a client begins a transaction. It waits for brokers that are away.
func (t *transactions) claim(ctx context.Context) error {
	t.unverified.Store(false)
	return t.retry(ctx, func(ctx context.Context) error {
		if err := t.look(ctx, true); err != nil {
			return err
		}
		return t.abortOpen(ctx)
	})
}

// verify is called before a transaction begins after a connection was lost. A transaction
// that begins while another of the same id hangs would decide that one too, should it
// abort: what was committed would be lost.
func (t *transactions) verify(ctx context.Context) error {
	if !t.unverified.Swap(false) {
		return nil
	}
	return t.retry(ctx, func(ctx context.Context) error {
		// Until markers are written it is not known whether one is lost.
		state, err := t.state(ctx)
		if err != nil {
			return err
		}
		if strings.HasPrefix(state, "Prepare") {
			return kerr.ConcurrentTransactions
		}
		return t.look(ctx, false)
	})
}

// retry repeats f until it goes well, an own transaction hangs, or the brokers refuse to
// say. It logs once that it waits, and shows it.
func (t *transactions) retry(ctx context.Context, f func(context.Context) error) error {
	var wait backoff
	for waiting := false; ; {
		bounded, cancel := context.WithTimeout(ctx, endPatience)
		err := f(bounded)
		cancel()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil, errors.Is(err, errOwnHangs):
			t.cluster.Status.Clear(noteHanging)
			return err
		case denied(err):
			t.log.Info("brokers do not say whether earlier transactions are open: going on without", "error", err)
			return nil
		}
		if !waiting && !errors.Is(err, kerr.ConcurrentTransactions) {
			waiting = true
			t.log.Warn("cannot make sure yet that no earlier transaction is open: waiting", "transactional_id", t.id, "error", err)
		}
		t.note("waits to make sure that no earlier transaction of %s is open: %v", t.id, err)
		wait.next = min(wait.next, time.Second)
		if !wait.wait(ctx, nil) {
			return ctx.Err()
		}
	}
}

func (t *transactions) note(format string, args ...any) {
	t.cluster.Status.Note(noteHanging, status.Note{Text: fmt.Sprintf(format, args...)})
}

// look finds what hangs and ends it. own says that this process has no client that uses
// its transactional id.
func (t *transactions) look(ctx context.Context, own bool) error {
	found, err := hanging.Find(ctx, t.cl, t.prefix, t.topics...)
	hidden := errors.Is(err, hanging.ErrHidden)
	if err != nil && !hidden {
		return err
	}
	t.hidden.Store(hidden)
	if hidden && own && t.sweep.Swap(false) {
		left, err := hanging.Left(ctx, t.cl, t.prefix)
		if err != nil {
			return err
		}
		found = append(found, left...)
	}
	if len(found) == 0 {
		return nil
	}
	live, err := t.live(ctx)
	if err != nil {
		return err
	}
	for _, tx := range found {
		switch {
		case tx.ID == t.id && !own:
			t.restart()
			return errOwnHangs
		case tx.ID != t.id && live[t.clientID(tx.ID)]:
			t.note("waits for the process of %s to end its transaction on %v, whose marker the brokers lost", tx.ID, tx.Partitions)
			continue
		}
		err := t.end(ctx, tx)
		if errors.Is(err, hanging.ErrOther) {
			t.log.Error("a transaction that the brokers hold for complete cannot be ended from here", "partitions", tx.Partitions, "producer", tx.Producer, "error", err)
			t.note("%v", err)
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// denied tells that the brokers will not answer, however often they are asked. Whom they
// do not let look at transactions of its own name they do not let write any either: that is
// waited for.
func denied(err error) bool {
	for _, k := range []error{kerr.GroupAuthorizationFailed, kerr.ClusterAuthorizationFailed, kerr.UnsupportedVersion} {
		if errors.Is(err, k) {
			return true
		}
	}
	return false
}

// live is the client ids of the group's members.
func (t *transactions) live(ctx context.Context) (map[string]bool, error) {
	groups, err := kadm.NewClient(t.cl).DescribeGroups(ctx, t.group)
	if err == nil {
		err = groups.Error()
	}
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return nil, fmt.Errorf("describe group %s: %w", t.group, err)
	}
	members := map[string]bool{}
	for _, m := range groups[t.group].Members {
		members[m.ClientID] = true
	}
	return members, nil
}

// end ends one transaction that hangs.
func (t *transactions) end(ctx context.Context, tx hanging.Transaction) error {
	t.note("ends the transaction of %s on %v, whose marker the brokers lost: %s", tx.ID, tx.Partitions, tx.Decision())
	if err := hanging.End(ctx, t.cl, tx, t.group); err != nil {
		return err
	}
	t.cluster.Status.Clear(noteHanging)
	for _, p := range tx.Partitions {
		t.metrics.hanging.WithLabelValues(p.Topic, tx.Decision()).Inc()
		t.log.Warn("ended a transaction that its coordinator held for complete and that was open: the brokers had lost its marker",
			"partition", p.String(), "producer", tx.Producer, "epoch", p.Epoch, "decision", tx.Decision(), "transactional_id", tx.ID, "group", t.group)
	}
	if len(tx.Partitions) == 0 {
		t.log.Warn("ended a transaction that may have held the group's offsets: where is hidden", "producer", tx.Producer, "decision", tx.Decision(), "transactional_id", tx.ID, "group", t.group)
	}
	return nil
}

// restart has the session end, for the next one to claim.
func (t *transactions) restart() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.startOver != nil {
		t.startOver(errOwnHangs)
	}
}

// unstable is told that offsets or a changelog cannot be read to their end since a time.
func (t *transactions) unstable(since time.Time) {
	t.lookNow()
	if t.hidden.Load() && time.Since(since) > t.timeout+abortSlack {
		// Nothing that is under way lasts as long. Where producers may not be described,
		// the process's own and its dead predecessors' last transactions are ended.
		t.sweep.Store(true)
		t.restart()
	}
}

// state is what the coordinator says of this process's transactional id, "" where it
// has none.
func (t *transactions) state(ctx context.Context) (string, error) {
	all, err := kadm.NewClient(t.cl).DescribeTransactions(ctx, t.id)
	if err != nil {
		return "", err
	}
	switch tx := all[t.id]; {
	case errors.Is(tx.Err, kerr.TransactionalIDNotFound):
		return "", nil
	default:
		return tx.State, tx.Err
	}
}

// abortOpen aborts what a predecessor of this instance left open: else readers wait for
// its time-out.
func (t *transactions) abortOpen(ctx context.Context) error {
	state, err := t.state(ctx)
	if err != nil || state == "" || strings.HasPrefix(state, "Complete") || state == "Empty" {
		return err
	}
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID, req.TransactionTimeoutMillis = &t.id, int32(t.timeout.Milliseconds())
	resp, err := req.RequestWith(ctx, t.cl)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.ErrorCode) // CONCURRENT_TRANSACTIONS until it is aborted
}
