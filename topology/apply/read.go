package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sluice-rl/sluice/topology"
)

// keyShareGroupHeartbeat tells brokers that serve share groups.
const keyShareGroupHeartbeat = 76

// read reads the state of the topics and share groups that the topology names.
func read(ctx context.Context, cl *kgo.Client, t topology.Topology, namespace string) (State, error) {
	have := State{Topics: map[string]TopicState{}}
	admin := kadm.NewClient(cl)
	var names []string
	for short := range maps.Keys(t.Topics) {
		names = append(names, topology.Name(namespace, short))
	}
	slices.Sort(names)
	existing, err := readTopics(ctx, cl, names, have.Topics)
	if err != nil {
		return have, err
	}
	if len(existing) > 0 {
		configs, err := admin.DescribeTopicConfigs(ctx, existing...)
		if err != nil {
			return have, fmt.Errorf("describe topics: %w", err)
		}
		for _, rc := range configs {
			if rc.Err != nil {
				return have, fmt.Errorf("describe topic %s: %w", rc.Name, rc.Err)
			}
			for _, c := range rc.Configs {
				have.Topics[rc.Name].Configs[c.Key] = c.MaybeValue()
			}
		}
	}
	have.Groups, err = readGroups(ctx, cl, t, namespace)
	return have, err
}

// readTopics fills in partitions and replication and returns the names that exist. It
// asks for the metadata itself, because the admin client may answer from a cache.
func readTopics(ctx context.Context, cl *kgo.Client, names []string, into map[string]TopicState) ([]string, error) {
	req := kmsg.NewPtrMetadataRequest()
	for _, name := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return nil, fmt.Errorf("list topics: %w", err)
	}
	var existing []string
	for _, t := range resp.Topics {
		err := kerr.ErrorForCode(t.ErrorCode)
		if errors.Is(err, kerr.UnknownTopicOrPartition) || t.Topic == nil {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("topic %s: %w", *t.Topic, err)
		}
		state := TopicState{Partitions: int32(len(t.Partitions)), Configs: map[string]string{}}
		if len(t.Partitions) > 0 {
			state.Replication = int16(len(t.Partitions[0].Replicas))
		}
		into[*t.Topic] = state
		existing = append(existing, *t.Topic)
	}
	return existing, nil
}

// readGroups returns nil where the brokers have no share groups.
func readGroups(ctx context.Context, cl *kgo.Client, t topology.Topology, namespace string) (map[string]map[string]string, error) {
	versions, err := kadm.NewClient(cl).ApiVersions(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask the brokers what they can: %w", err)
	}
	for _, b := range versions {
		if _, _, ok := b.KeyVersions(keyShareGroupHeartbeat); !ok {
			return nil, nil
		}
	}
	groups := map[string]map[string]string{}
	req := kmsg.NewPtrDescribeConfigsRequest()
	for _, s := range t.Stages {
		if s.Intake != "share" {
			continue
		}
		res := kmsg.NewDescribeConfigsRequestResource()
		res.ResourceType, res.ResourceName = kmsg.ConfigResourceTypeGroupConfig, topology.Name(namespace, s.Group)
		req.Resources = append(req.Resources, res)
	}
	if len(req.Resources) == 0 {
		return groups, nil
	}
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return nil, fmt.Errorf("describe share groups: %w", err)
	}
	for _, r := range resp.Resources {
		groups[r.ResourceName] = map[string]string{}
		if err := kerr.ErrorForCode(r.ErrorCode); err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
			return nil, fmt.Errorf("describe share group %s: %w", r.ResourceName, detailed(err, r.ErrorMessage))
		}
		for _, c := range r.Configs {
			// Only what was set for the group: a broker's default is not ours.
			if c.Value != nil && c.Source == kmsg.ConfigSourceGroupConfig {
				groups[r.ResourceName][c.Name] = *c.Value
			}
		}
	}
	return groups, nil
}
