package trainer

import (
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/plugin/kslog"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/topology"
)

const (
	firstWait   = 250 * time.Millisecond
	longestWait = 5 * time.Second
)

// connect waits for the brokers and for the topic, then starts reading where the
// state says.
func (t *Trainer) connect(ctx context.Context) error {
	topic := topology.Name(t.cfg.Namespace, topicBatches)
	probe, err := kgo.NewClient(t.options()...)
	if err != nil {
		return fmt.Errorf("kafka client: %w", err)
	}
	defer probe.Close()
	partitions, err := t.awaitTopic(ctx, kadm.NewClient(probe), topic)
	if err != nil {
		return err
	}
	from := map[int32]kgo.Offset{}
	for p := range partitions {
		from[p] = kgo.NewOffset().AtStart()
		if at, ok := t.state.Positions[p]; ok {
			from[p] = kgo.NewOffset().At(at)
		}
	}
	t.client, err = kgo.NewClient(append(t.options(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.ProducerBatchMaxBytes(t.cfg.MaxMessageBytes),
		kgo.WithHooks(&connection{ready: t.ready}),
	)...)
	if err != nil {
		return fmt.Errorf("kafka client: %w", err)
	}
	t.ready(nil)
	return nil
}

func (t *Trainer) options() []kgo.Opt {
	return append(slices.Clip(t.cfg.Connect), kgo.ClientID("simpolicy"), kgo.WithLogger(kslog.New(t.log)))
}

// awaitTopic returns the topic's partitions once there are any.
func (t *Trainer) awaitTopic(ctx context.Context, adm *kadm.Client, topic string) (map[int32]struct{}, error) {
	said := ""
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		partitions, err := partitionsOf(ctx, adm, topic)
		if err == nil {
			return partitions, nil
		}
		t.ready(err)
		if err.Error() != said {
			said = err.Error()
			t.log.Warn("waiting for Kafka", "topic", topic, "error", err)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
	}
}

func partitionsOf(ctx context.Context, adm *kadm.Client, topic string) (map[int32]struct{}, error) {
	ctx, cancel := context.WithTimeout(ctx, longestWait)
	defer cancel()
	md, err := adm.Metadata(ctx, topic)
	if err != nil {
		return nil, err
	}
	detail := md.Topics[topic]
	if detail.Err != nil {
		return nil, detail.Err
	}
	if len(detail.Partitions) == 0 {
		return nil, fmt.Errorf("topic %s has no partitions yet", topic)
	}
	all := map[int32]struct{}{}
	for p := range detail.Partitions {
		all[p] = struct{}{}
	}
	return all, nil
}

// produce writes one record and waits for its acknowledgement, for as long as the
// context lives.
func (t *Trainer) produce(ctx context.Context, topic string, m proto.Message) error {
	rec, err := codec.Encode(m)
	if err != nil {
		return err
	}
	out := &kgo.Record{Topic: topology.Name(t.cfg.Namespace, topic), Key: rec.Key, Value: rec.Value}
	for _, h := range rec.Headers {
		out.Headers = append(out.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
	}
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		err := t.client.ProduceSync(ctx, out).FirstErr()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		t.log.Warn("cannot publish, trying again", "topic", out.Topic, "error", err)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

func fromKafka(r *kgo.Record) codec.Record {
	rec := codec.Record{Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		rec.Headers = append(rec.Headers, codec.Header{Key: h.Key, Value: h.Value})
	}
	return rec
}

// connection turns the client's connections into readiness.
type connection struct{ ready func(error) }

// OnBrokerConnect is called by the client.
func (c *connection) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	c.ready(err)
}
