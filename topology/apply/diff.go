package apply

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/sluice-rl/sluice/topology"
)

// State is what a cluster has, by full name.
type State struct {
	Topics map[string]TopicState
	// Groups holds the configs set for share groups. Nil: the brokers have none
	// (Kafka before 4.1, Redpanda).
	Groups map[string]map[string]string
}

// TopicState is one topic.
type TopicState struct {
	Partitions  int32
	Replication int16
	Configs     map[string]string
}

// Kind is what a difference needs.
type Kind string

const (
	// Create: it is missing.
	Create Kind = "create"
	// Alter: it differs and may be changed in place.
	Alter Kind = "alter"
	// Refuse: it differs and cannot be changed without losing the meaning of data.
	Refuse Kind = "refuse"
	// Note: worth knowing; nothing to do.
	Note Kind = "note"
)

// Difference is one thing in which a cluster and the topology disagree.
type Difference struct {
	Kind Kind `json:"kind"`
	// Resource is "topic NAME", "share group NAME" or "right".
	Resource string `json:"resource"`
	// Setting is a config, "partitions" or "replication"; empty for the whole.
	Setting string `json:"setting,omitempty"`
	Is      string `json:"is,omitempty"`
	Wanted  string `json:"wanted,omitempty"`

	name  string
	topic topology.Topic
}

// String says it in one line.
func (d Difference) String() string {
	switch {
	case d.Setting == "" && d.Kind == Note:
		return fmt.Sprintf("%s: %s", d.Resource, d.Wanted)
	case d.Setting == "":
		return fmt.Sprintf("%s %s (%s)", d.Kind, d.Resource, d.Wanted)
	case d.Kind == Create:
		return fmt.Sprintf("set %s: %s = %s", d.Resource, d.Setting, d.Wanted)
	}
	return fmt.Sprintf("%s %s: %s is %s, topology says %s", d.Kind, d.Resource, d.Setting, d.Is, d.Wanted)
}

// Diff lists the differences, topics first, each in order of name.
func Diff(t topology.Topology, namespace string, have State) []Difference {
	var ds []Difference
	for _, short := range slices.Sorted(maps.Keys(t.Topics)) {
		ds = append(ds, diffTopic(t, topology.Name(namespace, short), t.Topics[short], have)...)
	}
	for _, stage := range slices.Sorted(maps.Keys(t.Stages)) {
		if s := t.Stages[stage]; s.Intake == "share" {
			ds = append(ds, diffGroup(stage, topology.Name(namespace, s.Group), have)...)
		}
	}
	return ds
}

func diffTopic(t topology.Topology, name string, want topology.Topic, have State) []Difference {
	resource := "topic " + name
	is, ok := have.Topics[name]
	if !ok {
		what := fmt.Sprintf("%d partitions, replication %d, %s", want.Partitions, t.Replication, retention(want))
		return []Difference{{Kind: Create, Resource: resource, Wanted: what, name: name, topic: want}}
	}
	var ds []Difference
	add := func(k Kind, setting, is, wanted string) {
		if is != wanted {
			ds = append(ds, Difference{Kind: k, Resource: resource, Setting: setting, Is: is, Wanted: wanted, name: name})
		}
	}
	add(Refuse, "partitions", strconv.Itoa(int(is.Partitions)), strconv.Itoa(int(want.Partitions)))
	if is.Replication != t.Replication {
		add(Note, "replication", strconv.Itoa(int(is.Replication)), strconv.Itoa(int(t.Replication)))
	}
	configs := topicConfigs(t, want)
	for _, key := range slices.Sorted(maps.Keys(configs)) {
		add(Alter, key, is.Configs[key], configs[key])
	}
	return ds
}

// topicConfigs are the configs that the topology decides.
func topicConfigs(t topology.Topology, tp topology.Topic) map[string]string {
	c := map[string]string{
		"max.message.bytes": strconv.Itoa(int(t.MaxMessageBytes)),
		"cleanup.policy":    "compact",
	}
	switch {
	case tp.Retention.For == 0:
		return c
	case tp.Retention.Compact:
		c["cleanup.policy"] = "compact,delete"
	default:
		c["cleanup.policy"] = "delete"
	}
	c["retention.ms"] = strconv.FormatInt(tp.Retention.For.Milliseconds(), 10)
	return c
}

func retention(tp topology.Topic) string {
	switch {
	case tp.Retention.Compact && tp.Retention.For == 0:
		return "compacted"
	case tp.Retention.Compact:
		return "compacted, kept for " + tp.Retention.For.String()
	}
	return "kept for " + tp.Retention.For.String()
}

// groupConfigs: a share group begins at the latest record unless told otherwise, and
// calls made before the first executor came would never run.
func groupConfigs() map[string]string {
	return map[string]string{"share.auto.offset.reset": "earliest"}
}

func diffGroup(stage, name string, have State) []Difference {
	resource := "share group " + name
	if have.Groups == nil {
		return []Difference{{
			Kind: Note, Resource: resource,
			Wanted: "these brokers have no share groups; give " + stage + " the intake classic in the topology file",
		}}
	}
	var ds []Difference
	configs := groupConfigs()
	for _, key := range slices.Sorted(maps.Keys(configs)) {
		is, set := have.Groups[name][key]
		switch {
		case !set || is == "":
			ds = append(ds, Difference{Kind: Create, Resource: resource, Setting: key, Wanted: configs[key], name: name})
		case is != configs[key]:
			ds = append(ds, Difference{Kind: Alter, Resource: resource, Setting: key, Is: is, Wanted: configs[key], name: name})
		}
	}
	return ds
}
