// Package group decides when a group of trajectories is closed, and what becomes of
// each member.
//
// It reads a Prompt, which opens a group, and Scored trajectories, which join it; it
// writes one GroupClosed. It holds the state of one group and turns it into bytes and
// back; which groups there are, and what time it is, is its caller's business.
//
// What it promises:
//
//  1. The first graded copy that joins a place counts, every later one is a duplicate.
//     A member that was given up holds its place only until a graded copy comes, so
//     that work done twice, or again, is not lost to the copy that failed.
//  2. A group closes once. It is complete when every place is taken. Where all are
//     graded it is used, or degenerate if all rewards are equal. Where some are not,
//     complete or at the deadline, it needs max(2, ceil(size/2)) graded members to be
//     used or degenerate, otherwise it is dropped.
//  3. Ungraded and missing members are in no mean.
//  4. GroupClosed names every sample index, in order, with its fate.
package group
