package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/stages/internal/status"
	"github.com/sluice-rl/sluice/topology"
)

// Begin names clients that are about to be made as not ready, then tells Begun. A stage
// that is ready once all parts named so far are usable would otherwise be ready between
// one client and the next. RunShare, RunClassic, RunKeyed and RunRanges call it first;
// a stage that uses none of them calls it when it is about to do its work.
func (c ClusterConfig) Begin(roles ...string) {
	if c.Ready != nil {
		for _, role := range roles {
			c.Ready(partName(role), errNotBegun)
		}
	}
	if c.Begun != nil {
		c.Begun()
	}
}

// partName is what the client of a role is called in the report of readiness.
func partName(role string) string { return "kafka " + role }

// awaitTopics waits until the topics of a stage exist, and says once which do not. A
// client asked to consume an absent topic says nothing. It returns false if ctx ended.
func (c ClusterConfig) awaitTopics(ctx context.Context, name string, stage topology.Stage) (bool, error) {
	cl, st, err := c.dialWaiting(errLooking, name, "topics")
	if err != nil {
		return false, err
	}
	defer st.forget()
	defer cl.Close()
	// No work waits for the topic in which a process speaks of itself.
	writes := slices.DeleteFunc(slices.Clone(stage.Writes), func(t string) bool { return t == topology.StatusTopic })
	topics := slices.Concat(stage.Reads, stage.Broadcast, writes)
	slices.Sort(topics)
	names := c.names(slices.Compact(topics))
	var wait backoff
	for logged := ""; ; {
		missing, other, err := c.compare(ctx, cl, names)
		if err == nil && len(missing) == 0 {
			if len(other) > 0 {
				text := "the cluster's topics have other partition counts than this process's topology: " + strings.Join(other, "; ")
				c.log().Warn(text + ": start every stage, and `sluice apply`, with one topology.yaml")
				c.Status.Note("topology", status.Note{Text: text})
			}
			if logged != "" {
				c.log().Info("all topics exist now")
			}
			return ctx.Err() == nil, nil
		}
		if err == nil {
			list := strings.Join(missing, ", ")
			st.setWork(fmt.Errorf("topics do not exist: %s: run `sluice apply`", list))
			if logged != list {
				logged = list
				c.log().Warn("topics do not exist: run `sluice apply`; waiting for them", "topics", missing)
			}
		}
		if !wait.wait(ctx, nil) {
			return false, nil
		}
	}
}

// compare returns those of the topics that the brokers do not know, and what is to be said
// of those that have another number of partitions than the topology gives them.
func (c ClusterConfig) compare(ctx context.Context, cl *kgo.Client, names []string) (missing, other []string, err error) {
	meta, err := kadm.NewClient(cl).Metadata(ctx, names...)
	if err != nil {
		return nil, nil, err
	}
	for _, n := range names {
		t, ok := meta.Topics[n]
		if !ok || errors.Is(t.Err, kerr.UnknownTopicOrPartition) {
			missing = append(missing, n)
			continue
		}
		if want := int(c.Topology.Topics[c.short(n)].Partitions); t.Err == nil && want > 0 && len(t.Partitions) != want {
			other = append(other, fmt.Sprintf("%s has %d, the topology says %d", n, len(t.Partitions), want))
		}
	}
	return missing, other, nil
}
