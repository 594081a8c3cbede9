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
	"github.com/twmb/franz-go/pkg/kmsg"

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

// AwaitTopics waits until the topics of a stage exist and it may read and write them, and
// says once what is not so. A client asked to consume an absent topic says nothing, and one
// without a right first fails when there is something to write. It returns false if ctx
// ended. RunShare, RunClassic, RunKeyed and RunRanges call it.
func (c ClusterConfig) AwaitTopics(ctx context.Context, name string, stage topology.Stage) (bool, error) {
	cl, st, err := c.dialWaiting(errLooking, name, "topics")
	if err != nil {
		return false, err
	}
	defer st.forget()
	defer cl.Close()
	var wait backoff
	for logged := ""; ; {
		found, err := c.look(ctx, cl, stage)
		lacks := found.lacks()
		if err == nil && lacks == "" {
			if len(found.other) > 0 {
				text := "the cluster's topics have other partition counts than this process's topology: " + strings.Join(found.other, "; ")
				c.log().Warn(text + ": start every stage, and `sluice apply`, with one topology.yaml")
				c.Status.Note("topology", status.Note{Text: text})
			}
			if logged != "" {
				c.log().Info("all topics exist now, and may be read and written")
			}
			return ctx.Err() == nil, nil
		}
		if err == nil {
			st.setWork(errors.New(lacks))
			if logged != lacks {
				logged = lacks
				c.log().Warn(lacks + "; waiting")
			}
		}
		if !wait.wait(ctx, nil) {
			return false, nil
		}
	}
}

// topics is what the brokers say of a stage's topics.
type topics struct {
	// missing do not exist, denied are rights that the stage does not have.
	missing, denied []string
	// other have another number of partitions than the topology gives them.
	other []string
}

func (t topics) lacks() string {
	var all []string
	if len(t.missing) > 0 {
		all = append(all, "topics do not exist: "+strings.Join(t.missing, ", ")+": run `sluice apply`")
	}
	if len(t.denied) > 0 {
		all = append(all, "Kafka does not permit this user to "+strings.Join(t.denied, ", to ")+": `sluice apply --acls` gives each stage its rights")
	}
	return strings.Join(all, "; ")
}

func (c ClusterConfig) look(ctx context.Context, cl *kgo.Client, stage topology.Stage) (topics, error) {
	// No work waits for the topic in which a process speaks of itself.
	writes := slices.DeleteFunc(slices.Clone(stage.Writes), func(t string) bool { return t == topology.StatusTopic })
	reads := slices.Concat(stage.Reads, stage.Broadcast)
	names := c.names(slices.Compact(slices.Sorted(slices.Values(slices.Concat(reads, writes)))))
	req := kmsg.NewPtrMetadataRequest()
	req.IncludeTopicAuthorizedOperations = true
	for _, n := range names {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = &n
		req.Topics = append(req.Topics, topic)
	}
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return topics{}, err
	}
	said := map[string]kmsg.MetadataResponseTopic{}
	for _, t := range resp.Topics {
		if t.Topic != nil {
			said[*t.Topic] = t
		}
	}
	var found topics
	for _, n := range names {
		t, ok := said[n]
		err := kerr.ErrorForCode(t.ErrorCode)
		if !ok || errors.Is(err, kerr.UnknownTopicOrPartition) {
			found.missing = append(found.missing, n)
			continue
		}
		for _, need := range []struct {
			operation kmsg.ACLOperation
			word      string
			topics    []string
		}{{kmsg.ACLOperationRead, "read", reads}, {kmsg.ACLOperationWrite, "write", writes}} {
			if slices.Contains(need.topics, c.short(n)) && !permits(t, err, need.operation) {
				found.denied = append(found.denied, need.word+" topic "+n)
			}
		}
		if want := int(c.Topology.Topics[c.short(n)].Partitions); err == nil && want > 0 && len(t.Partitions) != want {
			found.other = append(found.other, fmt.Sprintf("%s has %d, the topology says %d", n, len(t.Partitions), want))
		}
	}
	return found, nil
}

// permits says whether the brokers let this user do it. Brokers that do not say what they
// permit are taken at their deeds.
func permits(t kmsg.MetadataResponseTopic, err error, operation kmsg.ACLOperation) bool {
	if errors.Is(err, kerr.TopicAuthorizationFailed) {
		return false
	}
	operations := kadm.DecodeACLOperations(t.AuthorizedOperations)
	return len(operations) == 0 || slices.Contains(operations, operation)
}
