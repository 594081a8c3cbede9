package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/topology"
	"github.com/sluice-rl/sluice/topology/apply"
)

// patience is how long the brokers may take to make the topics.
const patience = 30 * time.Second

// makeTopics makes the topics of the replay's own where they are missing.
func makeTopics(ctx context.Context, cluster kafka.ClusterConfig, id string) error {
	cl, err := kafka.NewClient(cluster, "replay", "replay-topics")
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no answer from %v within %v", cluster.Brokers, patience))
	defer cancel()
	_, err = apply.Apply(ctx, cl, ownTopology(cluster.Topology), apply.Options{Namespace: topology.ReplayNamespace(cluster.Namespace, id)})
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("topics of replay %s: %w", id, err)
	}
	return nil
}

// ownTopology has what a replay writes and metrics-writer reads.
func ownTopology(t topology.Topology) topology.Topology {
	writer := t.Stages["metrics-writer"]
	topics := map[string]topology.Topic{}
	for name, topic := range t.Topics {
		if name == topology.StatusTopic {
			continue // metrics-writer speaks of itself in the original's namespace
		}
		if slices.Contains(writer.Reads, name) || slices.Contains(writer.Writes, name) {
			topics[name] = topic
		}
	}
	t.Topics, t.Stages = topics, map[string]topology.Stage{"metrics-writer": writer}
	return t
}
