// Package apply makes a Kafka cluster agree with topology.yaml, or says what differs.
//
// It reads the topology and the cluster's topics, their configs and the configs of
// share groups. Diff is pure: it lists what to create, what may be altered and what
// is refused. Apply creates what is missing, alters retention and sizes only when told
// to, gives principals the rights that stages need (ACLs is pure too), and never touches partition counts: records of one key, the state of keyed
// stages and committed offsets are bound to partition numbers.
package apply
