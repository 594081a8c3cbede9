package hanging

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// OffsetsTopic is where the brokers keep the offsets of groups.
const OffsetsTopic = "__consumer_offsets"

// What a coordinator says of a transaction that it holds for ended.
const (
	completeCommit = "CompleteCommit"
	completeAbort  = "CompleteAbort"
)

// Partition is where a transaction hangs.
type Partition struct {
	Topic     string
	Partition int32
	// Epoch is the producer's when it wrote there, Start its first offset there.
	Epoch int16
	Start int64
}

// String gives the partition as Kafka's tools do.
func (p Partition) String() string { return fmt.Sprintf("%s-%d", p.Topic, p.Partition) }

// Transaction is one that hangs.
type Transaction struct {
	// ID is the transactional id.
	ID       string
	Producer int64
	// Commit is what its coordinator decided; false is abort.
	Commit bool
	// Partitions are those it is open on. Empty: it is not known whether there are any.
	Partitions []Partition
}

// Decision is Commit in words.
func (t Transaction) Decision() string {
	if t.Commit {
		return "commit"
	}
	return "abort"
}

// ErrHidden: the brokers do not let us see which transactions are open.
var ErrHidden = errors.New("open transactions cannot be seen (DescribeProducers is refused)")

// Find returns the transactions of ids with a prefix that hang on the topics. Their
// partitions are described; where that is refused it returns what it has and an error
// that wraps ErrHidden.
func Find(ctx context.Context, cl *kgo.Client, prefix string, topics ...string) ([]Transaction, error) {
	adm := kadm.NewClient(cl)
	before, hidden, err := open(ctx, adm, topics)
	if err != nil || len(before) == 0 {
		return nil, errors.Join(err, hidden)
	}
	producers := map[int64]bool{}
	for at := range before {
		producers[at.producer] = true
	}
	complete, err := adm.ListTransactions(ctx, slices.Collect(maps.Keys(producers)), []string{completeCommit, completeAbort})
	if err != nil {
		return nil, fmt.Errorf("list transactions: %w", err)
	}
	found := map[int64]*Transaction{}
	for _, t := range complete {
		if strings.HasPrefix(t.TxnID, prefix) && producers[t.ProducerID] {
			found[t.ProducerID] = &Transaction{ID: t.TxnID, Producer: t.ProducerID, Commit: t.State == completeCommit}
		}
	}
	if len(found) == 0 {
		return nil, hidden
	}
	// What is open after the coordinator was asked, from the same offset as before, was
	// open when it said complete.
	after, _, err := open(ctx, adm, topics)
	if err != nil {
		return nil, err
	}
	for at, p := range after {
		if t := found[at.producer]; t != nil && before[at] == p {
			t.Partitions = append(t.Partitions, p)
		}
	}
	var all []Transaction
	for _, t := range found {
		if len(t.Partitions) > 0 {
			slices.SortFunc(t.Partitions, func(a, b Partition) int { return strings.Compare(a.String(), b.String()) })
			all = append(all, *t)
		}
	}
	slices.SortFunc(all, func(a, b Transaction) int { return strings.Compare(a.ID, b.ID) })
	return all, hidden
}

// place is a producer on a partition.
type place struct {
	producer  int64
	topic     string
	partition int32
}

// open lists open transactions; hidden says which topics could not be looked at.
func open(ctx context.Context, adm *kadm.Client, topics []string) (all map[place]Partition, hidden, err error) {
	all = map[place]Partition{}
	for _, topic := range topics {
		described, err := adm.DescribeProducers(ctx, kadm.TopicsSet{topic: nil})
		if refused(err) {
			hidden = fmt.Errorf("%w: topic %s: %w", ErrHidden, topic, err)
			continue
		}
		if err != nil {
			return nil, hidden, fmt.Errorf("describe producers of %s: %w", topic, err)
		}
		for _, p := range described[topic].Partitions {
			for _, producer := range p.ActiveProducers {
				if producer.CurrentTxnStartOffset >= 0 {
					all[place{producer.ProducerID, topic, p.Partition}] = Partition{topic, p.Partition, producer.ProducerEpoch, producer.CurrentTxnStartOffset}
				}
			}
		}
	}
	return all, hidden, nil
}

// Left lists the transactions of ids with a prefix that are complete, for when nobody may
// see where they are open.
func Left(ctx context.Context, cl *kgo.Client, prefix string) ([]Transaction, error) {
	complete, err := kadm.NewClient(cl).ListTransactions(ctx, nil, []string{completeCommit, completeAbort})
	if err != nil {
		return nil, fmt.Errorf("list transactions: %w", err)
	}
	var all []Transaction
	for _, t := range complete {
		if strings.HasPrefix(t.TxnID, prefix) {
			all = append(all, Transaction{ID: t.TxnID, Producer: t.ProducerID, Commit: t.State == completeCommit})
		}
	}
	slices.SortFunc(all, func(a, b Transaction) int { return strings.Compare(a.ID, b.ID) })
	return all, nil
}

// refused tells that we may not ask.
func refused(err error) bool {
	var denied *kadm.AuthError
	return errors.As(err, &denied) || errors.Is(err, kerr.TopicAuthorizationFailed)
}
