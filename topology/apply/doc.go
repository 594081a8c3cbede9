// Package apply makes a Kafka cluster agree with topology.yaml, or says what differs.
//
// It reads the topology and the cluster's topics, their configs and the configs of
// share groups. Diff is pure: it lists what to create, what may be altered and what
// is refused. Apply creates what is missing, alters retention and sizes only when told
// to, and never touches partition counts: records of one key, the state of keyed
// stages and committed offsets are bound to partition numbers.
//
// Where it is told the form of the principals it also gives each stage the rights that it
// needs, of which ACLs, pure too, is the list. It takes none away.
package apply
