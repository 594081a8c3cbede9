package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/stages/internal/status"
)

// RunBroadcast reads all of the topics from the start, without a group, and follows
// them until ctx ends (nil) or f returns an error. caughtUp is called once, when
// everything that was there at the start has been given to f. Records that cannot be
// decoded are logged, counted, noted for `sluice status` until their key is written
// again, and left out. Since everybody reads them, one stage writes dead letters of them:
// it gives a producer, and writes them again whenever it starts and they are still there.
func RunBroadcast(ctx context.Context, cluster ClusterConfig, topics []string, caughtUp func(), f func(Message) error, letters ...*Producer) error {
	if len(topics) == 0 {
		return fmt.Errorf("%w: no topics to broadcast", ErrConfig)
	}
	role := "broadcast " + strings.Join(topics, ",")
	cl, st, err := cluster.dialWaiting(errReading, "", role,
		kgo.ConsumeTopics(cluster.names(topics)...), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	if err != nil {
		return err
	}
	defer st.retire()
	defer cl.Close()
	missing, err := cluster.unread(ctx, cl, st, topics)
	if err != nil {
		return nil // ctx ended before the brokers came
	}
	d := &delivery{cluster: cluster, metrics: newMetrics(cluster.Metrics, "broadcast"), take: f, letters: letters, unread: map[string]string{}}
	for caught := false; ; {
		if !caught && len(missing) == 0 {
			caught = true
			st.setWork(nil)
			if caughtUp != nil {
				caughtUp()
			}
		}
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		for _, e := range fetches.Errors() {
			cluster.log().Warn("broadcast: poll failed", "topic", e.Topic, "error", e.Err)
			(&backoff{next: time.Second}).wait(ctx, nil)
		}
		for it := fetches.RecordIter(); !it.Done(); {
			r := it.Next()
			if err := d.deliver(ctx, r); err != nil {
				return err
			}
			tp := topicPartition{cluster.short(r.Topic), r.Partition}
			if end, ok := missing[tp]; ok && r.Offset+1 >= end {
				delete(missing, tp)
			}
		}
	}
}

// unread waits for the brokers and says up to where each partition has something.
func (c ClusterConfig) unread(ctx context.Context, cl *kgo.Client, st *state, topics []string) (map[topicPartition]int64, error) {
	var wait backoff
	for logged := false; ; {
		all, err := c.logBounds(ctx, cl, topics...)
		if err == nil {
			missing := map[topicPartition]int64{}
			for t, ps := range all {
				for p, b := range ps {
					if b.start < b.stable {
						missing[topicPartition{t, p}] = b.stable
					}
				}
			}
			return missing, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if errors.Is(err, kerr.UnknownTopicOrPartition) {
			err = errors.New("a topic does not exist: run `sluice apply`")
		}
		st.setWork(fmt.Errorf("broadcast topics cannot be read yet: %w", err))
		if !logged {
			c.log().Warn("broadcast topics cannot be read yet: waiting", "topics", topics, "error", err)
			logged = true
		}
		wait.wait(ctx, nil)
	}
}

// delivery hands on the records of broadcast topics.
type delivery struct {
	cluster ClusterConfig
	metrics *metrics
	take    func(Message) error
	letters []*Producer
	// unread is the key of each topic's last record that could not be read.
	unread map[string]string
}

func (d *delivery) deliver(ctx context.Context, r *kgo.Record) error {
	if r.Attrs.IsControl() {
		return nil
	}
	topic := d.cluster.short(r.Topic)
	msg, err := Decode(d.cluster, r)
	if err != nil {
		return d.leaveOut(ctx, r, topic, err)
	}
	if key, there := d.unread[topic]; there && key == msg.Key {
		delete(d.unread, topic)
		d.cluster.Status.Clear(noteOf(topic))
	}
	d.metrics.records.WithLabelValues(topic, outcomeDone).Inc()
	return d.take(msg)
}

// leaveOut says of a record that it counts for nothing.
func (d *delivery) leaveOut(ctx context.Context, r *kgo.Record, topic string, cause error) error {
	d.cluster.log().Error("broadcast record left out", "topic", topic, "partition", r.Partition, "offset", r.Offset, "error", cause)
	d.metrics.records.WithLabelValues(topic, outcomeSkipped).Inc()
	d.unread[topic] = string(r.Key)
	d.cluster.Status.Note(noteOf(topic), status.Note{
		Text: fmt.Sprintf("%s/%d@%d cannot be read and counts for nothing: %v", topic, r.Partition, r.Offset, cause),
	})
	for _, p := range d.letters {
		if err := p.giveUp(ctx, r, cause); err != nil {
			return err
		}
	}
	return nil
}

func noteOf(topic string) string { return "records of " + topic }
