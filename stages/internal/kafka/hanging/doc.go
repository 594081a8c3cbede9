// Package hanging finds transactions that their coordinator holds for complete though a
// partition still has them open, and ends them.
//
// Nobody else does. A stable fetch of a group's offsets answers UNSTABLE_OFFSET_COMMIT
// for ever where such a transaction lies on its partition of __consumer_offsets, and a
// read_committed reader never comes past one that lies on a topic.
//
// It reads what the brokers say of open transactions and of their coordinators; it
// writes the marker that is missing. It promises to touch only transactions that were
// open on a partition both before and after their coordinator said CompleteCommit or
// CompleteAbort, and to end them as that says: what is Ongoing or Prepare… has somebody
// who will end it. No right on the cluster is needed beyond the use of the transactional
// id and the reading of the topics; where producers may not be described, Left names
// those that may be meant.
//
// # Where it comes from
//
// A report for Kafka's developers. Seen on Apache Kafka 4.4.0, one KRaft node,
// transaction.version 2; integration/apachekafka makes the state within a few kills of
// the broker (go test ./integration/apachekafka).
//
// A transaction is at PrepareCommit when its broker ends. When the broker is back, the
// transaction coordinator loads its partition of __transaction_state and sends the
// markers again. The first answers are retriable errors, since the partitions are not
// online yet, and TransactionMarkerRequestCompletionHandler enqueues them again. If the
// metadata cache then gives no leader endpoint for a partition, which it does for a
// moment while the broker registers, TransactionMarkerChannelManager logs
//
//	Couldn't find leader endpoint for partitions Set(__consumer_offsets-3) while trying
//	to send transaction markers for ID, these partitions are likely deleted already and
//	hence can be skipped
//
// takes the partition out of the transaction and completes it. The partition was not
// deleted; its marker is never written, and nothing says so afterwards. Here one id in
// about ten was left so by a kill in the middle of its commits. The partition can be any
// one of the transaction: with one of a topic, its last stable offset stands still.
//
// Wanted: a partition counts as deleted once a loaded metadata image knows its topic no
// more, and not before the broker's first image is caught up.
package hanging
