package kafka

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

const (
	topicDeadLetters  = "dead-letters"
	topicTrajectories = "trajectories"
	// keyQuestion is what topology.yaml says of the key of topics whose records
	// stand for trajectories that have not been taken into a group yet.
	keyQuestion = "question id"
)

// deadLetterWriter writes what is left of records that cannot be handled.
type deadLetterWriter struct {
	cluster ClusterConfig
	stage   string
	log     *slog.Logger
	metrics *metrics
}

// giveUp makes the records that end r: a dead letter and, where r stood for
// trajectories that are still awaited, their ends. body is r's message, nil if it
// could not be decoded.
func (u *deadLetterWriter) giveUp(r *kgo.Record, body proto.Message, cause error) []*kgo.Record {
	errorType := errorTypeOf(cause)
	topic := u.cluster.short(r.Topic)
	origin := originOf(r, body)
	u.metrics.deadLetters.WithLabelValues(errorType).Inc()
	u.cluster.Status.Failed(errorType, cause)
	u.log.Error("record given up", "topic", topic, "partition", r.Partition, "offset", r.Offset,
		"delivery", r.DeliveryCount(), "error_type", errorType, "error", cause)

	letter := &sluicev1.DeadLetter{
		Stage: u.stage, SourceTopic: topic, SourcePartition: r.Partition, SourceOffset: r.Offset,
		Key: r.Key, Value: r.Value, Headers: recordHeaders(r),
		ErrorType: errorType, Error: strings.ToValidUTF8(cause.Error(), "\uFFFD"),
		DeliveryCount: uint32(max(1, r.DeliveryCount())), Origin: origin, FailedAt: timestamppb.New(time.Now()),
	}
	records := u.encode(topicDeadLetters, letter)
	if records == nil {
		// The record itself may be at the limit: say where it is, not what.
		letter.Error += fmt.Sprintf(" (key, headers and value of %d bytes left out: read them at their offset)", len(r.Value))
		letter.Key, letter.Value, letter.Headers = nil, nil, nil
		records = u.encode(topicDeadLetters, letter)
	}
	if !u.endsTrajectories(topic, body) || origin == nil {
		return records
	}
	detail := errorType + ": " + strings.ToValidUTF8(cause.Error(), "\uFFFD")
	for _, t := range codec.GivenUp(origin, u.stage, detail, rand.Uint64) {
		records = append(records, u.encode(topicTrajectories, t)...)
	}
	return records
}

// endsTrajectories says whether giving up a record of the topic leaves trajectories
// awaited that nobody will end. After grouping they are no longer awaited; and one
// that was already given up must not be given up again for ever.
func (u *deadLetterWriter) endsTrajectories(topic string, body proto.Message) bool {
	if u.cluster.Topology.Topics[topic].Key != keyQuestion {
		return false
	}
	t, ok := body.(*sluicev1.Trajectory)
	return !ok || t.GetEndReason() != sluicev1.EndReason_END_REASON_INFRA_ERROR
}

func (u *deadLetterWriter) encode(topic string, m proto.Message) []*kgo.Record {
	r, err := u.cluster.encode(Output{Topic: topic, Body: m})
	if err != nil {
		u.log.Warn("cannot encode what ends a record", "topic", topic, "error", err)
		return nil
	}
	return []*kgo.Record{r}
}

func originOf(r *kgo.Record, body proto.Message) *sluicev1.Origin {
	if o, ok := codec.Origin(headers(r)); ok {
		return o
	}
	if body == nil {
		return nil
	}
	return codec.OriginOf(body)
}

func recordHeaders(r *kgo.Record) []*sluicev1.RecordHeader {
	hs := make([]*sluicev1.RecordHeader, 0, len(r.Headers))
	for _, h := range r.Headers {
		if h.Key == headerBegun {
			continue // whoever sends the letter's record again means to begin anew
		}
		hs = append(hs, &sluicev1.RecordHeader{Key: strings.ToValidUTF8(h.Key, "\uFFFD"), Value: h.Value})
	}
	return hs
}
