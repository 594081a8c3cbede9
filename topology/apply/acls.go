package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

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
	Principal string
	Kind      kmsg.ACLResourceType
	Name      string
	// Prefix says that the right is for all names that begin so.
	Prefix bool
	// Operation includes describe, where it is read or write.
	Operation kmsg.ACLOperation
}

// String is the right in one line.
func (a ACL) String() string {
	name := a.Name
	if a.Prefix {
		name += "*"
	}
	return fmt.Sprintf("%s may %s %s %s", a.Principal, word(a.Operation), word(a.Kind), name)
}

func word(v fmt.Stringer) string {
	return strings.ReplaceAll(strings.ToLower(v.String()), "_", "-")
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
		add := func(operation kmsg.ACLOperation, kind kmsg.ACLResourceType, name string, prefix bool) {
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
			add(kmsg.ACLOperationRead, kmsg.ACLResourceTypeTopic, topic, false)
		}
		for _, topic := range slices.Sorted(slices.Values(role.Writes)) {
			add(kmsg.ACLOperationWrite, kmsg.ACLResourceTypeTopic, topic, false)
		}
		if role.Group != "" {
			add(kmsg.ACLOperationRead, kmsg.ACLResourceTypeGroup, role.Group, false)
		}
		if role.Intake == topology.IntakeShare {
			// Where a new share group begins is the group's setting, not the client's.
			add(kmsg.ACLOperationAlterConfigs, kmsg.ACLResourceTypeGroup, role.Group, false)
		}
		if role.Intake == topology.IntakeKeyed || stage == feeder {
			add(kmsg.ACLOperationWrite, kmsg.ACLResourceTypeTransactionalId, stage+"-", true)
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
				Principal: a.Principal, Kind: r.ResourceType, Name: r.ResourceName,
				Prefix: r.ResourcePatternType == kmsg.ACLResourcePatternTypePrefixed, Operation: a.Operation,
			}] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(want), func(a ACL) bool { return have[a] }), nil
}

// createACLs gives the rights, from every host.
func createACLs(ctx context.Context, cl *kgo.Client, acls []ACL) error {
	if len(acls) == 0 {
		return nil
	}
	req := kmsg.NewPtrCreateACLsRequest()
	for _, a := range acls {
		c := kmsg.NewCreateACLsRequestCreation()
		c.Principal, c.Host, c.PermissionType = a.Principal, "*", kmsg.ACLPermissionTypeAllow
		c.ResourceType, c.ResourceName, c.Operation = a.Kind, a.Name, a.Operation
		c.ResourcePatternType = kmsg.ACLResourcePatternTypeLiteral
		if a.Prefix {
			c.ResourcePatternType = kmsg.ACLResourcePatternTypePrefixed
		}
		req.Creations = append(req.Creations, c)
	}
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return fmt.Errorf("create ACLs: %w", err)
	}
	if len(resp.Results) != len(acls) {
		return fmt.Errorf("create ACLs: %d answers for %d rights", len(resp.Results), len(acls))
	}
	for i, r := range resp.Results {
		if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
			return fmt.Errorf("create ACL: %s: %w", acls[i], detailed(err, r.ErrorMessage))
		}
	}
	return nil
}
