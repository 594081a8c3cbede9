package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	shareGroupsName = "share-groups.json"
	// keepEvery is how far the kept state of share groups may lie behind. What was
	// taken in between is delivered once more after a crash.
	keepEvery = 200 * time.Millisecond
)

// shareGroup is what must outlive a crash of the broker.
type shareGroup struct {
	// Settings are those that somebody set.
	Settings map[string]string `json:"settings,omitempty"`
	// Starts is, by topic and partition, the first offset that is not done with.
	Starts map[string]map[int32]int64 `json:"starts,omitempty"`
}

// shareGroups holds them by name.
type shareGroups map[string]shareGroup

// readShareGroups returns what was kept; nothing is kept before the first group.
func readShareGroups(dir string) (shareGroups, error) {
	path := filepath.Join(dir, shareGroupsName)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return shareGroups{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("share groups: %w", err)
	}
	groups := shareGroups{}
	if err := json.Unmarshal(b, &groups); err != nil {
		return nil, fmt.Errorf("share groups: %s is damaged (%w): remove it to let every share group begin anew at the end of its topics", path, err)
	}
	return groups, nil
}

// write replaces what is kept. Renamed into place: a kill leaves the old or the new.
func (g shareGroups) write(dir string, sync bool) error {
	b, err := json.Marshal(g)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, shareGroupsName)
	f, err := os.OpenFile(path+".tmp", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	if err == nil && sync {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}

// restore sets the groups up as they were. They must have no members.
func (g shareGroups) restore(ctx context.Context, cluster *kfake.Cluster, adm *kadm.Client) error {
	for name, group := range g {
		cluster.SetGroupConfigs(name, group.Settings)
		var starts kadm.Offsets
		for topic, partitions := range group.Starts {
			for p, at := range partitions {
				starts.AddOffset(topic, p, at, -1)
			}
		}
		if len(starts) == 0 {
			continue
		}
		set, err := adm.AlterShareGroupOffsets(ctx, name, starts)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		set.EachError(func(topic string, p int32, refused error) {
			// A topic that was deleted since has nothing to start at.
			if !errors.Is(refused, kerr.UnknownTopicOrPartition) {
				err = errors.Join(err, fmt.Errorf("%s: %s-%d: %w", name, topic, p, refused))
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// keepShareGroups writes the state of the share groups to the directory as it changes,
// until ctx ends.
func keepShareGroups(ctx context.Context, cfg Config, cl *kgo.Client, log *slog.Logger) {
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	var kept shareGroups
	for {
		now, err := describeShareGroups(ctx, cl)
		if err == nil && !reflect.DeepEqual(now, kept) {
			if err = now.write(cfg.DataDir, cfg.SyncWrites); err == nil {
				kept = now
			}
		}
		if err != nil && ctx.Err() == nil {
			log.Warn("the state of share groups is not kept: after a crash they would repeat more", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func describeShareGroups(ctx context.Context, cl *kgo.Client) (shareGroups, error) {
	groups := shareGroups{}
	resources, err := listGroupSettings(ctx, cl)
	if err != nil {
		return nil, err
	}
	for name, settings := range resources {
		groups[name] = shareGroup{Settings: settings}
	}
	all, err := kadm.NewClient(cl).DescribeShareGroupOffsets(ctx)
	if err != nil {
		return nil, err
	}
	for name, described := range all {
		group := groups[name]
		for topic, partitions := range described.Offsets {
			for p, o := range partitions {
				if o.Err != nil || o.StartOffset < 0 {
					continue
				}
				if group.Starts == nil {
					group.Starts = map[string]map[int32]int64{}
				}
				if group.Starts[topic] == nil {
					group.Starts[topic] = map[int32]int64{}
				}
				group.Starts[topic][p] = o.StartOffset
			}
		}
		groups[name] = group
	}
	return groups, nil
}

// listGroupSettings returns the settings of every group that has any.
func listGroupSettings(ctx context.Context, cl *kgo.Client) (map[string]map[string]string, error) {
	list := kmsg.NewPtrListConfigResourcesRequest()
	list.ResourceTypes = []int8{int8(kmsg.ConfigResourceTypeGroupConfig)}
	listed, err := list.RequestWith(ctx, cl)
	if err != nil {
		return nil, err
	}
	if err := kerr.ErrorForCode(listed.ErrorCode); err != nil {
		return nil, err
	}
	if len(listed.ConfigResources) == 0 {
		return nil, nil
	}
	describe := kmsg.NewPtrDescribeConfigsRequest()
	for _, r := range listed.ConfigResources {
		resource := kmsg.NewDescribeConfigsRequestResource()
		resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeGroupConfig, r.Name
		describe.Resources = append(describe.Resources, resource)
	}
	described, err := describe.RequestWith(ctx, cl)
	if err != nil {
		return nil, err
	}
	settings := map[string]map[string]string{}
	for _, r := range described.Resources {
		if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
			return nil, fmt.Errorf("settings of group %s: %w", r.ResourceName, err)
		}
		settings[r.ResourceName] = map[string]string{}
		for _, c := range r.Configs {
			if c.Source == kmsg.ConfigSourceGroupConfig && c.Value != nil {
				settings[r.ResourceName][c.Name] = *c.Value
			}
		}
	}
	return settings, nil
}
