package hanging

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// ErrOther: the transactional id has another producer by now, so that ending its
// transactions does not end the one that hangs.
var ErrOther = errors.New("the transactional id has another producer by now")

const (
	pauseMin = 20 * time.Millisecond
	pauseMax = time.Second
)

// ClientOptions are what a client needs that End is given.
func ClientOptions() []kgo.Opt {
	// Later versions of AddPartitionsToTxn are for brokers only.
	versions := kversion.Tip()
	versions.SetMaxKeyVersion(int16(kmsg.AddPartitionsToTxn), 3)
	return []kgo.Opt{kgo.MaxVersions(versions)}
}

// End ends a transaction that hangs: a new transaction of the same id and producer takes
// in the partitions and ends as the coordinator had decided, which writes the missing
// markers. group is whose offsets the transaction commits. Who used the id is fenced by
// it.
//
// If this process dies between the two, the brokers abort what it began. An abort of
// offsets does no harm to a stage that drops what it has taken already.
func End(ctx context.Context, cl *kgo.Client, t Transaction, group string) error {
	var producer int64
	var epoch int16
	err := retry(ctx, func() error {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionalID, req.TransactionTimeoutMillis = &t.ID, 10_000
		resp, err := req.RequestWith(ctx, cl)
		if err != nil {
			return err
		}
		producer, epoch = resp.ProducerID, resp.ProducerEpoch
		return kerr.ErrorForCode(resp.ErrorCode)
	})
	if err != nil {
		return fmt.Errorf("take over transactional id %s: %w", t.ID, err)
	}
	if producer != t.Producer {
		return fmt.Errorf("%w: %s has %d, the transaction is of %d; an administrator can end it with kafka-transactions.sh abort", ErrOther, t.ID, producer, t.Producer)
	}
	if err := takeIn(ctx, cl, t, group, producer, epoch); err != nil {
		return fmt.Errorf("begin a transaction of %s: %w", t.ID, err)
	}
	err = retry(ctx, func() error {
		req := kmsg.NewPtrEndTxnRequest()
		req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = t.ID, producer, epoch, t.Commit
		resp, err := req.RequestWith(ctx, cl)
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(resp.ErrorCode)
	})
	if err == nil {
		err = marked(ctx, cl, t.ID)
	}
	if err != nil {
		return fmt.Errorf("end a transaction of %s: %w", t.ID, err)
	}
	return nil
}

// marked waits until the markers are written: the brokers answer EndTxn before.
func marked(ctx context.Context, cl *kgo.Client, id string) error {
	return retry(ctx, func() error {
		all, err := kadm.NewClient(cl).DescribeTransactions(ctx, id)
		if err != nil {
			return err
		}
		if strings.HasPrefix(all[id].State, "Prepare") {
			return kerr.ConcurrentTransactions
		}
		return all[id].Err
	})
}

// takeIn adds the partitions to a transaction, which begins it.
func takeIn(ctx context.Context, cl *kgo.Client, t Transaction, group string, producer int64, epoch int16) error {
	offsets, topics := len(t.Partitions) == 0, map[string][]int32{}
	for _, p := range t.Partitions {
		if p.Topic == OffsetsTopic {
			offsets = true
			continue
		}
		topics[p.Topic] = append(topics[p.Topic], p.Partition)
	}
	if offsets {
		err := retry(ctx, func() error {
			req := kmsg.NewPtrAddOffsetsToTxnRequest()
			req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = t.ID, producer, epoch, group
			resp, err := req.RequestWith(ctx, cl)
			if err != nil {
				return err
			}
			return kerr.ErrorForCode(resp.ErrorCode)
		})
		if err != nil {
			return fmt.Errorf("add the offsets of group %s: %w", group, err)
		}
	}
	if len(topics) == 0 {
		return nil
	}
	return retry(ctx, func() error {
		req := kmsg.NewPtrAddPartitionsToTxnRequest()
		req.TransactionalID, req.ProducerID, req.ProducerEpoch = t.ID, producer, epoch
		for topic, partitions := range topics {
			rt := kmsg.NewAddPartitionsToTxnRequestTopic()
			rt.Topic, rt.Partitions = topic, partitions
			req.Topics = append(req.Topics, rt)
		}
		resp, err := req.RequestWith(ctx, cl)
		if err != nil {
			return err
		}
		for _, rt := range resp.Topics {
			for _, p := range rt.Partitions {
				if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
					return fmt.Errorf("add %s-%d: %w", rt.Topic, p.Partition, err)
				}
			}
		}
		return nil
	})
}

// retry repeats f while another transaction of the id is being ended or its coordinator
// is not there.
func retry(ctx context.Context, f func() error) error {
	for pause := pauseMin; ; pause = min(2*pause, pauseMax) {
		err := f()
		if err == nil || !kerr.IsRetriable(err) && !errors.Is(err, kerr.ConcurrentTransactions) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(pause):
		}
	}
}
