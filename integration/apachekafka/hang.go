package apachekafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Hanging is a transaction that its coordinator holds for complete and that is open on a
// partition of a topic.
type Hanging struct {
	TransactionalID string
	State           string
	Topic           string
	Partition       int32
	ProducerID      int64
}

const (
	// workFor is how long transactions run before the broker is killed.
	workFor = 2 * time.Second
	// settleFor bounds the wait for the coordinator to end what was at Prepare….
	settleFor = time.Minute
)

// HangTransactions kills the broker, at most kills times, until a transaction hangs, and
// returns all that do. For each id it runs transactions, one after the other, until the
// broker's end breaks one off: they commit an offset of the id's group or, where that is
// empty, write a record to partition 0 of topic. Kafka 4.4 loses some of the markers of
// those that were being ended then.
func (b *Broker) HangTransactions(kills int, topic string, groupOf map[string]string) []Hanging {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(kills+1)*time.Minute)
	defer cancel()
	for n := 1; n <= kills; n++ {
		began := time.Now()
		working, stop := context.WithCancel(ctx)
		var work sync.WaitGroup
		for id, group := range groupOf {
			work.Go(func() {
				if group == "" {
					_ = b.writeRecords(working, id, topic) // the error is the broker's end
					return
				}
				_ = b.commitOffsets(working, id, group, topic)
			})
		}
		time.Sleep(workFor)
		b.kill()
		stop()
		b.start() // the client waits for the fate of what it had sent
		work.Wait()
		hanging, err := b.hanging(ctx, slices.Collect(maps.Keys(groupOf)), topic)
		if err != nil {
			b.t.Fatal(err)
		}
		b.t.Logf("kill %d, %v: %d markers are lost: %+v", n, time.Since(began).Round(time.Second), len(hanging), hanging)
		if len(hanging) > 0 {
			return hanging
		}
	}
	b.t.Skipf("the broker lost no marker in %d kills: there is nothing to end", kills)
	return nil
}

// commitOffsets runs transactions that commit an offset until a request fails. They are
// sent one by one, without what a client does besides: the more end in a second, the more
// are being ended when the broker is killed.
func (b *Broker) commitOffsets(ctx context.Context, id, group, topic string) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Address), kgo.RequestRetries(0), kgo.RetryTimeout(time.Second))
	if err != nil {
		return err
	}
	defer cl.Close()
	topics, err := kadm.NewClient(cl).ListTopics(ctx, topic)
	if err != nil {
		return err
	}
	producer, epoch, err := beginProducer(ctx, id, cl)
	if err != nil {
		return err
	}
	for {
		if err := commitOffset(ctx, cl, id, group, topics[topic], producer, epoch); err != nil {
			return fmt.Errorf("commit an offset: %w", err)
		}
		end := kmsg.NewPtrEndTxnRequest()
		end.TransactionalID, end.ProducerID, end.ProducerEpoch, end.Commit = id, producer, epoch, true
		resp, err := end.RequestWith(ctx, cl)
		if err == nil {
			err = kerr.ErrorForCode(resp.ErrorCode)
		}
		if err != nil {
			return fmt.Errorf("end the transaction: %w", err)
		}
		if resp.Version >= 5 {
			producer, epoch = resp.ProducerID, resp.ProducerEpoch
		}
	}
}

// beginProducer asks for a producer of the transactional id until the broker has one.
func beginProducer(ctx context.Context, id string, cl *kgo.Client) (producer int64, epoch int16, err error) {
	for {
		init := kmsg.NewPtrInitProducerIDRequest()
		init.TransactionalID, init.TransactionTimeoutMillis = &id, 10_000
		resp, err := init.RequestWith(ctx, cl)
		if err == nil {
			err = kerr.ErrorForCode(resp.ErrorCode)
		}
		if err == nil {
			return resp.ProducerID, resp.ProducerEpoch, nil
		}
		select {
		case <-ctx.Done():
			return 0, 0, errors.Join(err, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// writeRecords runs transactions that write a record until a request fails.
func (b *Broker) writeRecords(ctx context.Context, id, topic string) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Address), kgo.TransactionalID(id), kgo.TransactionTimeout(10*time.Second),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0))
	if err != nil {
		return err
	}
	defer cl.Close()
	for {
		if err := cl.BeginTransaction(); err != nil {
			return err
		}
		if err := cl.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte(id)}).FirstErr(); err != nil {
			return fmt.Errorf("write a record: %w", err)
		}
		if err := cl.EndTransaction(ctx, kgo.TryCommit); err != nil {
			return fmt.Errorf("end the transaction: %w", err)
		}
	}
}

func commitOffset(ctx context.Context, cl *kgo.Client, id, group string, topic kadm.TopicDetail, producer int64, epoch int16) error {
	commit := kmsg.NewPtrTxnOffsetCommitRequest()
	commit.TransactionalID, commit.Group, commit.ProducerID, commit.ProducerEpoch = id, group, producer, epoch
	t, p := kmsg.NewTxnOffsetCommitRequestTopic(), kmsg.NewTxnOffsetCommitRequestTopicPartition()
	t.Topic, t.TopicID, t.Partitions = topic.Topic, topic.ID, append(t.Partitions, p)
	commit.Topics = append(commit.Topics, t)
	for {
		resp, err := commit.RequestWith(ctx, cl)
		if err != nil {
			return err
		}
		err = kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
		if !errors.Is(err, kerr.ConcurrentTransactions) { // the one before is being ended
			return err
		}
	}
}

// hanging lists what is open though its coordinator holds it for complete, once the
// coordinator has ended what it was ending.
func (b *Broker) hanging(ctx context.Context, ids []string, topic string) ([]Hanging, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Address))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	ctx, cancel := context.WithTimeout(ctx, settleFor)
	defer cancel()
	for {
		found, settled, err := hangingNow(ctx, adm, ids, topic)
		if err == nil && settled {
			return found, nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(err, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func hangingNow(ctx context.Context, adm *kadm.Client, ids []string, topic string) (found []Hanging, settled bool, err error) {
	transactions, err := adm.DescribeTransactions(ctx, ids...)
	if err != nil {
		return nil, false, err
	}
	complete := map[int64]kadm.DescribedTransaction{}
	for _, tx := range transactions {
		switch {
		case errors.Is(tx.Err, kerr.TransactionalIDNotFound):
		case tx.Err != nil:
			return nil, false, tx.Err
		case tx.State == "PrepareCommit", tx.State == "PrepareAbort":
			return nil, false, nil
		case tx.State == "CompleteCommit", tx.State == "CompleteAbort":
			complete[tx.ProducerID] = tx
		}
	}
	open, err := adm.DescribeProducers(ctx, kadm.TopicsSet{"__consumer_offsets": nil, topic: nil})
	if err != nil {
		return nil, false, err
	}
	for name, t := range open {
		for _, p := range t.Partitions {
			for _, producer := range p.ActiveProducers {
				if tx, ok := complete[producer.ProducerID]; ok && producer.CurrentTxnStartOffset >= 0 {
					found = append(found, Hanging{tx.TxnID, tx.State, name, p.Partition, producer.ProducerID})
				}
			}
		}
	}
	return found, true, nil
}
