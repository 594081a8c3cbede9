// Package broker is the embedded Kafka broker: franz-go's kfake with a data directory,
// for demos, tests and single machines.
//
// It listens on 127.0.0.1 only, speaks the Kafka protocol with transactions, consumer
// groups and share groups (KIP-932), and keeps everything under one directory. It
// promises that what it acknowledged survives the end of the process, kill -9
// included (an end of the machine only with SyncWrites), and that a directory written
// by a newer version is refused and left untouched.
//
// After a crash it repairs what kfake only writes when it stops, before a client can
// connect: transactions that were open are aborted with markers and their producers
// fenced, and share groups get their settings and places back (at most 200 ms old, so
// that a record may be delivered once more). See crash.go.
//
// It is one node without replication. Point the stages at real brokers for anything
// that must outlive this machine.
package broker
