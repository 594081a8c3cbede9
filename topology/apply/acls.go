package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sluice-rl/sluice/topology"
)

// Trainer is the role of the trainer, which is no stage of the topology.
const Trainer = "trainer"

// trainer is what a trainer reads and writes.
var trainer = topology.Stage{Reads: []string{"ppo-batches"}, Writes: []string{"policy-updates", "trainer-reports", "trainer-annotations"}}

// ACL is one right of a principal.
type ACL struct {
	Principal string `json:"principal"`
	// Kind is "topic", "group" or "transactional-id".
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Prefix says that the right is for all names that begin so.
	Prefix bool `json:"prefix,omitempty"`
	// Operation is "read" or "write", either of which includes describe, or "alter_configs".
	Operation string `json:"operation"`
}

// String is the right in one line.
func (a ACL) String() string {
	name := a.Name
	if a.Prefix {
		name += "*"
	}
	return fmt.Sprintf("%s may %s %s %s", a.Principal, a.Operation, a.Kind, name)
}

// ErrPrincipal: the form of principals does not tell stages apart.
var ErrPrincipal = errors.New("want a principal with {stage} in it, such as User:sluice-{stage}")

// ErrNoAuthorizer: the brokers keep no rights.
var ErrNoAuthorizer = errors.New("the brokers have no authorizer")

// ACLs are the least rights that each stage and the trainer need, in the order of their
// names. In principal "{stage}" stands for the name of the stage, or "trainer".
//
// A stage reads what the topology says and its own changelog, as a member of its group if
// it has one, and writes what the topology says. Keyed stages and prompt-feeder write under
// transactional ids that begin with their name. Nobody needs a right on the cluster.
func ACLs(t topology.Topology, namespace, principal string) ([]ACL, error) {
	if kind, name, ok := strings.Cut(principal, ":"); !ok || kind == "" || !strings.Contains(name, "{stage}") {
		return nil, fmt.Errorf("%w, not %q", ErrPrincipal, principal)
	}
	roles := map[string]topology.Stage{Trainer: trainer}
	maps.Copy(roles, t.Stages)
	var all []ACL
	for _, stage := range slices.Sorted(maps.Keys(roles)) {
		role := roles[stage]
		who := strings.ReplaceAll(principal, "{stage}", stage)
		add := func(operation, kind, name string, prefix bool) {
			all = append(all, ACL{Principal: who, Kind: kind, Name: topology.Name(namespace, name), Prefix: prefix, Operation: operation})
		}
		reads := slices.Concat(role.Reads, role.Broadcast)
		for topic, tp := range t.Topics {
			if tp.Of == stage {
				reads = append(reads, topic)
			}
		}
		slices.Sort(reads)
		for _, topic := range slices.Compact(reads) {
			add("read", "topic", topic, false)
		}
		for _, topic := range slices.Sorted(slices.Values(role.Writes)) {
			add("write", "topic", topic, false)
		}
		if role.Group != "" {
			add("read", "group", role.Group, false)
		}
		if role.Intake == topology.IntakeShare {
			// Where a new share group begins is the group's setting, not the client's.
			add("alter_configs", "group", role.Group, false)
		}
		if role.Intake == topology.IntakeKeyed || stage == feeder {
			add("write", "transactional-id", stage+"-", true)
		}
	}
	return all, nil
}

// feeder writes in transactions without reading in a group.
const feeder = "prompt-feeder"

// missingACLs are those of want that the cluster does not have, whatever else permits.
func missingACLs(ctx context.Context, cl *kgo.Client, want []ACL) ([]ACL, error) {
	req := kmsg.NewPtrDescribeACLsRequest()
	req.ResourceType, req.ResourcePatternType = kmsg.ACLResourceTypeAny, kmsg.ACLResourcePatternTypeAny
	req.Operation, req.PermissionType = kmsg.ACLOperationAny, kmsg.ACLPermissionTypeAllow
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return nil, fmt.Errorf("list ACLs: %w", err)
	}
	err = kerr.ErrorForCode(resp.ErrorCode)
	if errors.Is(err, kerr.SecurityDisabled) {
		return nil, fmt.Errorf("%w: everybody may do everything: give them one (authorizer.class.name), or leave rights out", ErrNoAuthorizer)
	}
	if err != nil {
		return nil, fmt.Errorf("list ACLs: %w", detailed(err, resp.ErrorMessage))
	}
	have := map[ACL]bool{}
	for _, r := range resp.Resources {
		for _, a := range r.ACLs {
			if a.Host != "*" {
				continue
			}
			have[ACL{
				Principal: a.Principal, Kind: kindName(r.ResourceType), Name: r.ResourceName,
				Prefix: r.ResourcePatternType == kmsg.ACLResourcePatternTypePrefixed, Operation: strings.ToLower(a.Operation.String()),
			}] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(want), func(a ACL) bool { return have[a] }), nil
}

// createACLs gives the rights, from every host.
func createACLs(ctx context.Context, cl *kgo.Client, acls []ACL) error {
	adm := kadm.NewClient(cl)
	for _, a := range acls {
		b := kadm.NewACLs().Allow(a.Principal).AllowHosts("*").ResourcePatternType(kadm.ACLPatternLiteral)
		if a.Prefix {
			b.ResourcePatternType(kadm.ACLPatternPrefixed)
		}
		switch a.Operation {
		case "read":
			b.Operations(kadm.OpRead)
		case "write":
			b.Operations(kadm.OpWrite)
		case "alter_configs":
			b.Operations(kadm.OpAlterConfigs)
		default:
			return fmt.Errorf("%s: no such operation", a)
		}
		switch a.Kind {
		case "topic":
			b.Topics(a.Name)
		case "group":
			b.Groups(a.Name)
		case "transactional-id":
			b.TransactionalIDs(a.Name)
		default:
			return fmt.Errorf("%s: no such kind", a)
		}
		results, err := adm.CreateACLs(ctx, b)
		if err != nil {
			return fmt.Errorf("create ACL: %s: %w", a, err)
		}
		for _, r := range results {
			if r.Err != nil {
				return fmt.Errorf("create ACL: %s: %w", a, detailed(r.Err, &r.ErrMessage))
			}
		}
	}
	return nil
}

func kindName(t kmsg.ACLResourceType) string {
	switch t {
	case kmsg.ACLResourceTypeTopic:
		return "topic"
	case kmsg.ACLResourceTypeGroup:
		return "group"
	case kmsg.ACLResourceTypeTransactionalId:
		return "transactional-id"
	}
	return t.String()
}
