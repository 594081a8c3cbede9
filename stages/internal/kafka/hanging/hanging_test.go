package hanging_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/integration/apachekafka"
	"github.com/sluice-rl/sluice/stages/internal/kafka/hanging"
)

const (
	topic = "ns.outputs"
	kills = 10
)

// The state that Kafka leaves is made, found, and ended: group offsets can be fetched and
// the topic can be read to its end again, and what the coordinator had decided holds.
func TestWhatHangsOnApacheKafkaIsEnded(t *testing.T) {
	broker := apachekafka.Start(t)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cl, err := kgo.NewClient(append(hanging.ClientOptions(), kgo.SeedBrokers(broker.Address))...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	if _, err := adm.CreateTopic(ctx, 1, 1, nil, topic); err != nil {
		t.Fatal(err)
	}
	groups := map[string]string{}
	for i := range 48 {
		groups[fmt.Sprintf("ns.stage-%02d", i)] = fmt.Sprintf("group-%02d", i)
		if i < 12 {
			groups[fmt.Sprintf("ns.stage-records-%02d", i)] = ""
		}
	}
	for round := range 2 {
		made := broker.HangTransactions(kills, topic, groups)
		if found, err := hanging.Find(ctx, cl, "other.stage-", topic, hanging.OffsetsTopic); len(found) > 0 || err != nil {
			t.Errorf("transactions of another stage: %v, %v", found, err)
		}
		found, err := hanging.Find(ctx, cl, "ns.stage-", topic, hanging.OffsetsTopic)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, tx := range found {
			n += len(tx.Partitions)
		}
		if n != len(made) {
			t.Errorf("found %+v, made %+v", found, made)
		}
		for _, tx := range found {
			group := groups[tx.ID]
			if group != "" && !errors.Is(stable(ctx, adm, group), kerr.UnstableOffsetCommit) {
				t.Errorf("offsets of %s are stable before: the test proves nothing", group)
			}
			// Either way makes it stable: the stage's own dedupe makes either right.
			if round > 0 && group != "" {
				tx.Commit = !tx.Commit
			}
			began := time.Now()
			if err := hanging.End(ctx, cl, tx, group); err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v ended by %s after %v", tx, tx.Decision(), time.Since(began))
			if err := stable(ctx, adm, group); group != "" && err != nil {
				t.Errorf("offsets of %s after the end: %v", group, err)
			}
		}
		if again, err := hanging.Find(ctx, cl, "ns.stage-", topic, hanging.OffsetsTopic); err != nil || len(again) > 0 {
			t.Errorf("still hanging: %+v, %v", again, err)
		}
	}
}

// stable fetches a group's offsets as a stage does that restores its state; what another
// transaction of the test left to its time-out is waited for.
func stable(ctx context.Context, adm *kadm.Client, group string) error {
	resp, err := adm.FetchOffsets(kadm.RequireStable(ctx), group)
	return errors.Join(err, resp.Error())
}
