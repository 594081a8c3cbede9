// Package deadletters reads the topic of records that could not be handled.
//
// It reads dead-letters from the start to where it ended when asked, without a group,
// so looking changes nothing. Everything in a dead letter is hostile: texts are
// escaped by what prints them (List and Show do).
package deadletters

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/topology/sluice/terminal"
)

// ErrNotFound: there is no dead letter with that id.
var ErrNotFound = errors.New("no such dead letter")

// Letter is one dead letter and where it lies.
type Letter struct {
	Partition int32
	Offset    int64
	Body      *sluicev1.DeadLetter
	// Broken is set where the dead letter itself cannot be decoded.
	Broken error
}

// ID names the letter: partition/offset.
func (l Letter) ID() string { return fmt.Sprintf("%d/%d", l.Partition, l.Offset) }

// Read calls f for every dead letter that is there now, in the order of its partition.
func Read(ctx context.Context, connect []kgo.Opt, topic string, f func(Letter) error) error {
	cl, err := kgo.NewClient(append(slices.Clip(connect),
		kgo.ClientID("sluice-dead-letters"), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
	)...)
	if err != nil {
		return fmt.Errorf("kafka client: %w", err)
	}
	defer cl.Close()
	left, err := unread(ctx, kadm.NewClient(cl), topic)
	if err != nil {
		return err
	}
	for len(left) > 0 {
		fetches := cl.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("read %s: %w", topic, err)
		}
		for _, e := range fetches.Errors() {
			return fmt.Errorf("read %s/%d: %w", e.Topic, e.Partition, e.Err)
		}
		for _, r := range fetches.Records() {
			if r.Offset >= left[r.Partition]-1 {
				delete(left, r.Partition)
			}
			if r.Attrs.IsControl() {
				continue
			}
			if err := f(letter(r)); err != nil {
				return err
			}
		}
	}
	return nil
}

// unread gives the end offsets of the partitions that hold anything.
func unread(ctx context.Context, admin *kadm.Client, topic string) (map[int32]int64, error) {
	starts, err := admin.ListStartOffsets(ctx, topic)
	if err != nil {
		return nil, fmt.Errorf("offsets of %s: %w", topic, err)
	}
	ends, err := admin.ListCommittedOffsets(ctx, topic)
	if err != nil {
		return nil, fmt.Errorf("offsets of %s: %w", topic, err)
	}
	if err := ends.Error(); errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil, fmt.Errorf("topic %s does not exist: run `sluice apply` first: %w", topic, err)
	} else if err != nil {
		return nil, fmt.Errorf("offsets of %s: %w", topic, err)
	}
	left := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) {
		if start, _ := starts.Lookup(topic, o.Partition); o.Offset > start.Offset {
			left[o.Partition] = o.Offset
		}
	})
	return left, nil
}

func letter(r *kgo.Record) Letter {
	l := Letter{Partition: r.Partition, Offset: r.Offset}
	rec := codec.Record{Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		rec.Headers = append(rec.Headers, codec.Header{Key: h.Key, Value: h.Value})
	}
	m, err := codec.Decode(rec)
	if err != nil {
		l.Broken = err
		return l
	}
	body, ok := m.(*sluicev1.DeadLetter)
	if !ok {
		l.Broken = fmt.Errorf("a %s, not a DeadLetter", codec.TypeName(m))
		return l
	}
	l.Body = body
	return l
}

// Row is the letter in one line: id, time, stage, source, class, place and error.
func (l Letter) Row() []string {
	if l.Broken != nil {
		return []string{l.ID(), "", "", "", "unreadable", "", l.Broken.Error()}
	}
	b := l.Body
	return []string{
		l.ID(), b.GetFailedAt().AsTime().Format(time.DateTime), b.GetStage(),
		fmt.Sprintf("%s/%d@%d", b.GetSourceTopic(), b.GetSourcePartition(), b.GetSourceOffset()),
		b.GetErrorType(), place(b.GetOrigin()), terminal.Shorten(b.GetError(), 90),
	}
}

// Head names the columns of Row.
func Head() []string {
	return []string{"id", "failed at", "stage", "source", "class", "place", "error"}
}

func place(o *sluicev1.Origin) string {
	if o.GetGroup() == nil {
		return ""
	}
	s := fmt.Sprint(identity.GroupOf(o.GetGroup()))
	if o.SampleIndex != nil {
		s += fmt.Sprintf("/%d", o.GetSampleIndex())
	}
	return s
}

// Show prints one letter whole, escaped.
func (l Letter) Show(w io.Writer) {
	field := func(name, value string) { fmt.Fprintf(w, "%-10s %s\n", name, terminal.Escape(value)) }
	field("id", l.ID())
	if l.Broken != nil {
		field("unreadable", l.Broken.Error())
		return
	}
	b := l.Body
	field("stage", b.GetStage())
	field("class", b.GetErrorType())
	field("error", b.GetError())
	field("failed at", b.GetFailedAt().AsTime().Format(time.RFC3339Nano))
	field("source", fmt.Sprintf("topic %s, partition %d, offset %d, delivery %d", b.GetSourceTopic(), b.GetSourcePartition(), b.GetSourceOffset(), b.GetDeliveryCount()))
	field("place", place(b.GetOrigin()))
	field("key", string(b.GetKey()))
	for _, h := range b.GetHeaders() {
		field("header", h.GetKey()+" = "+string(h.GetValue()))
	}
	fmt.Fprintf(w, "value      %d bytes\n", len(b.GetValue()))
	const most = 4096
	shown := b.GetValue()[:min(len(b.GetValue()), most)]
	fmt.Fprint(w, hex.Dump(shown))
	if len(b.GetValue()) > most {
		fmt.Fprintf(w, "… %d bytes more; --json gives them all\n", len(b.GetValue())-most)
	}
}

// JSON is the letter as one JSON object; bytes are base64.
func (l Letter) JSON() ([]byte, error) {
	if l.Broken != nil {
		return json.Marshal(map[string]string{"id": l.ID(), "unreadable": terminal.Escape(l.Broken.Error())})
	}
	body, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(l.Body)
	if err != nil {
		return nil, fmt.Errorf("dead letter %s: %w", l.ID(), err)
	}
	return fmt.Appendf(nil, `{"id":%q,"letter":%s}`, l.ID(), body), nil
}
