// Command advantage-grouper gathers the scored trajectories of each problem into a group,
// closes it and gives its members their advantages.
//
// Reads prompts, which open groups, and scored, whose trajectories join them; writes
// grouped: each member once, as it arrives, then GroupClosed. Promises: every group
// closes exactly once, whatever is killed; the first graded copy of a member counts, later
// ones are counted and dropped; time runs for a group only while the stage works and has
// caught up.
//
// The machine turns records into effects; package group has the rules of membership and
// closing, package advantage the arithmetic.
package main
