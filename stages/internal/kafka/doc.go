// Package kafka is the only code that talks to Kafka on a stage's behalf.
//
// It reads the topics that topology.yaml gives a stage, hands decoded messages to
// the stage's own code and writes what that returns. It knows two kinds of stage:
//
//   - Workers do slow, order-free work with many records in flight. RunShare holds
//     one record per slot from a share group; RunClassic works concurrently inside
//     the partitions of a consumer group. Outputs are acknowledged by the brokers
//     before the input counts as done: at least once.
//   - RunKeyed drives one Machine per partition. Outputs, changes of state and
//     offsets commit in one transaction: exactly once.
//
// Beside them stand RunBroadcast, which reads whole topics without a group, and
// Producer, for stages that only write.
//
// ChooseIntake says which of RunShare and RunClassic a worker takes.
//
// What it promises: a record is never lost and never loops for ever. One that cannot
// be decoded, that a stage rejects, whose output is too large or on which work has
// begun too often goes to dead-letters, and what it stood for ends as
// infra_error in trajectories, before its offset moves. Only before a record of a newer
// schema the stage pauses, says so and reports itself not ready: it wants to be
// upgraded. While the brokers are away
// it waits, says so once, and reports itself not ready. Told to stop, it waits for the
// work in flight and for seconds besides, also while its group is joining; and a process
// that comes back under its instance takes its killed predecessors out of the group.
//
// What a stage must do: be safe to repeat (workers), leave the state untouched when
// a Step is rejected (machines), and return an error for trouble with infrastructure
// only: such an error is retried for as long as it lasts.
package kafka
