// Package topology is the list of topics and of who reads and writes them.
//
// It reads topology.yaml (built in, or a file given by a flag), refuses what is not
// consistent (unknown topics, unequal partition counts of topics that one keyed
// stage reads together) and promises that no other place in the program names a
// topic's partitions, retention or size. It imports nothing of the pipeline.
package topology
