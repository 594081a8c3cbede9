// Package group decides when a group of trajectories is closed, and what becomes of
// each member.
//
// It reads a Prompt, which opens a group, and Scored trajectories, which join it; it
// writes one GroupClosed. It holds the state of one group and turns it into bytes and
// back; which groups there are, and what time it is, is its caller's business.
//
// What it promises:
//
//  1. One graded copy per place counts: of those that are there when the group closes,
//     the one with the smallest number, which was drawn before their lengths were known;
//     every other is a duplicate. A member that was given up holds its place only until a
//     graded copy comes, so that work done twice, or again, is not lost to the copy that
//     failed.
//  2. A group closes once. It is complete when every place is taken and no refill is
//     awaited. Where all are graded it is used, or degenerate if there is nothing to tell
//     them apart. Where some are not, complete, at the deadline or by hand, it needs
//     max(2, ceil(size/2)) graded members to be used or degenerate, otherwise it is
//     dropped.
//  3. Ungraded and missing members are in no mean.
//  4. GroupClosed names every sample index, in order, with its fate.
//  5. Lost names the members that infrastructure has lost, each once, whether or not its
//     refill is lost as well; never stragglers, never prompts that are too long.
package group
