package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sluice-rl/sluice/topology"
)

var (
	// ErrRefused: the cluster differs in what cannot be changed in place.
	ErrRefused = errors.New("the cluster differs in what cannot be changed")
	// ErrDiffers: the cluster differs in what may be altered, and Alter was not set.
	ErrDiffers = errors.New("the cluster differs from the topology")
)

// Options say what Apply may do.
type Options struct {
	Namespace string
	// Alter permits changes to what exists.
	Alter bool
	// DryRun changes nothing and creates nothing.
	DryRun bool
	// Principal gives each stage its rights too: see ACLs. Empty: rights are left alone.
	Principal string
}

// Apply makes the cluster agree and returns every difference it found. It creates
// nothing where something is refused. ErrRefused and ErrDiffers say which differences
// remain.
func Apply(ctx context.Context, cl *kgo.Client, t topology.Topology, o Options) ([]Difference, error) {
	ds, err := applyTopics(ctx, cl, t, o)
	if err != nil || o.Principal == "" {
		return ds, err
	}
	rights, err := ACLs(t, o.Namespace, o.Principal)
	if err == nil {
		rights, err = missingACLs(ctx, cl, rights)
	}
	if err != nil {
		return ds, err
	}
	for _, r := range rights {
		ds = append(ds, Difference{Kind: Create, Resource: "right", Wanted: r.String()})
	}
	if o.DryRun {
		return ds, nil
	}
	return ds, createACLs(ctx, cl, rights)
}

func applyTopics(ctx context.Context, cl *kgo.Client, t topology.Topology, o Options) ([]Difference, error) {
	have, err := read(ctx, cl, t, o.Namespace)
	if err != nil {
		return nil, err
	}
	ds := Diff(t, o.Namespace, have)
	if err := remain(ErrRefused, ds, Refuse); err != nil {
		return ds, fmt.Errorf("%w\npartition counts bind keys, state and offsets to partition numbers: choose another --namespace, or remove the topics with all their data", err)
	}
	if o.DryRun {
		if err := remain(ErrDiffers, ds, Alter); err != nil {
			return ds, err
		}
		return ds, nil
	}
	if err := create(ctx, cl, t, ds); err != nil {
		return ds, err
	}
	if !o.Alter {
		if err := remain(ErrDiffers, ds, Alter); err != nil {
			return ds, fmt.Errorf("%w\n--yes alters them", err)
		}
		return ds, nil
	}
	return ds, alter(ctx, cl, ds, Alter)
}

func remain(sentinel error, ds []Difference, k Kind) error {
	var lines []string
	for _, d := range ds {
		if d.Kind == k {
			lines = append(lines, "  "+d.String())
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return fmt.Errorf("%w:\n%s", sentinel, strings.Join(lines, "\n"))
}

func create(ctx context.Context, cl *kgo.Client, t topology.Topology, ds []Difference) error {
	admin := kadm.NewClient(cl)
	for _, d := range ds {
		if d.Kind != Create || d.Setting != "" {
			continue
		}
		configs := map[string]*string{}
		for k, v := range topicConfigs(t, d.topic) {
			configs[k] = kadm.StringPtr(v)
		}
		_, err := admin.CreateTopic(ctx, d.topic.Partitions, t.Replication, configs, d.name)
		// Two applies at once want the same.
		if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			return fmt.Errorf("create %s: %w", d.Resource, err)
		}
	}
	if err := visible(ctx, cl, ds); err != nil {
		return err
	}
	return alter(ctx, cl, ds, Create)
}

// visible waits until the brokers tell of every topic that was created: the controller
// answers before they have heard of it, and a stage that comes in between finds none.
func visible(ctx context.Context, cl *kgo.Client, ds []Difference) error {
	var created []string
	for _, d := range ds {
		if d.Kind == Create && d.Setting == "" {
			created = append(created, d.name)
		}
	}
	for len(created) > 0 {
		existing, err := readTopics(ctx, cl, created, map[string]TopicState{})
		if err != nil {
			return err
		}
		if len(existing) == len(created) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d created topics are not visible: %w", len(created)-len(existing), len(created), context.Cause(ctx))
		case <-time.After(100 * time.Millisecond):
		}
	}
	return nil
}

// alter sets the configs of the differences of one kind.
func alter(ctx context.Context, cl *kgo.Client, ds []Difference, k Kind) error {
	for _, d := range ds {
		if d.Kind != k || d.Setting == "" {
			continue
		}
		req := kmsg.NewPtrIncrementalAlterConfigsRequest()
		res := kmsg.NewIncrementalAlterConfigsRequestResource()
		res.ResourceType = kmsg.ConfigResourceTypeTopic
		if strings.HasPrefix(d.Resource, "share group ") {
			res.ResourceType = kmsg.ConfigResourceTypeGroupConfig
		}
		res.ResourceName = d.name
		c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		c.Name, c.Op, c.Value = d.Setting, kmsg.IncrementalAlterConfigOpSet, kmsg.StringPtr(d.Wanted)
		res.Configs = append(res.Configs, c)
		req.Resources = append(req.Resources, res)
		resp, err := req.RequestWith(ctx, cl)
		if err != nil {
			return fmt.Errorf("set %s of %s: %w", d.Setting, d.Resource, err)
		}
		for _, r := range resp.Resources {
			if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
				return fmt.Errorf("set %s of %s to %s: %w", d.Setting, d.Resource, d.Wanted, detailed(err, r.ErrorMessage))
			}
		}
	}
	return nil
}

func detailed(err error, message *string) error {
	if message == nil || *message == "" {
		return err
	}
	return fmt.Errorf("%w: %q", err, *message)
}
