// Package step closes a step: it turns the closed groups of one step and their members
// into a StepBatch and its micro-batches.
//
// It reads GroupMember and GroupClosed, each group's members before its closing, doubled
// or not; it writes one StepBatch, always, with count 0 if there is nothing to train on,
// and its MicroBatches.
//
// What it promises:
//
//  1. A step is complete when as many different slots have closed as it has groups.
//  2. Only members of used groups of training are packed, and of those only the ones
//     that are what was sampled (schemas/custody), with policy tokens, within the training
//     context, within the bound of staleness and with an advantage other than 0. Every graded member of a used group is in
//     StepBatch.members with its fate, and the refused ones with their reason.
//  3. N counts the graded members of used and degenerate groups, packed or not.
//     Advantages are multiplied by (data in the micro-batch / N).
//  4. A step of nothing but evaluation has no batch. Groups of evaluation are waited
//     for with the rest of their step and never packed or counted.
//  5. A closing that cannot be used (another number of groups than the step has;
//     advantages that do not sum to 0) is refused and counts as that of a dropped group.
//  6. Equal members and closings give equal batches, in whatever order the groups come.
package step
