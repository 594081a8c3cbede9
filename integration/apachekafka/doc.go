// Package apachekafka gives tests the broker that production uses: Apache Kafka as a
// process of its own, one node, from the jars that `make kafka` installed.
//
// It reads nothing but those jars and keeps its data in the test's directory. It
// promises a broker that answers, that a test can end by SIGKILL and start again, and
// that is gone when the test ends. HangTransactions brings it into the state in which
// Kafka 4.4 leaves a group's offsets unstable for good.
package apachekafka
