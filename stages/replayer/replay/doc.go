// Package replay runs what was recorded through other rewards: the same trajectories,
// groups and steps, with new scores, advantages and batches.
//
// It reads recorded trajectories (a Scored or a bare Trajectory each), the recorded
// GroupClosed of their groups and, for batches, the recorded StepBatch; it writes new
// Scored, GroupClosed, StepBatch and MicroBatch.
//
// What it promises:
//
//  1. There is no clock. Every time in an output is one of a record: a score is dated
//     as the recorded score was (or as the trajectory's end, or its record), a closing
//     as the recorded closing, a batch as the recorded batch (or its last closing).
//  2. Membership is what the recorded closing says. The copy that held a place holds it
//     again; a member that was missing or ungraded stays so; a copy that was dropped
//     takes part in nothing. A member on which the new reward fails becomes ungraded.
//     Whether the group is used, degenerate or dropped follows from the new rewards by
//     the rules of package group.
//  3. A group is replayed whole or not at all: where a member's record is not in the
//     input, the group is named as incomplete, and so is its step.
//  4. Equal inputs and configurations give equal messages; groups and steps stand in
//     the order of their places. With the reward that was used at first, scores,
//     advantages and batches come out as they were recorded.
//
// A batch needs to know how far the trainer was. The recorded batch says so by the
// staleness of its members; a step of which nothing reached the batcher is taken as the
// newest version that sampled for it.
package replay
