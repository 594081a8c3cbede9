// Package perform performs a replay: it reads what was recorded, from Kafka or an
// archive, runs it through package replay on all processors, and writes the result to
// topics of the replay's own or to an archive.
//
// What it promises:
//
//  1. What is read is fixed at the first start. It is read partition by partition and by
//     offset, and what comes out stands in that order, scores first, then closings and
//     batches by place: equal inputs and configurations give equal bytes, whatever the
//     parallelism and however often it was interrupted.
//  2. A checkpoint holds how far it is and how much of each output belongs to that.
//     After an interruption or a crash, files are cut back to the checkpoint. Topics are
//     written in transactions under an id of the replay's, so that the process that goes on fences
//     off the process that was killed; what was committed after the checkpoint is then
//     counted, partition by partition, and not written again. Nothing is doubled or lost.
//  3. A replay that was begun under one configuration is not resumed under another.
//  4. Memory holds some chunks of records, the recorded closings, and about 200 bytes for
//     each trajectory. What batches need of the trajectories is kept on disk meanwhile.
package perform
