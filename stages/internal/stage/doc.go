// Package stage is what every stage binary is made of around its own work: a process
// (package topology/process: settings, log, signals, health, exit codes) that is told
// its Kafka cluster and finds its place in the topology.
//
// It promises that a stage's Run gets a context that ends at the first signal, and that
// the process is ready once the runner says so.
package stage
