// Package status keeps what a process of a stage says of itself to `sluice status` and to
// other stages, and writes it to the topic stage-status.
//
// Reads: what the stage and the runner note on a Board: trouble by name, the last error,
// the record in hand that has waited longest.
//
// Writes: StageStatus, keyed by stage and instance, through whatever Report is given.
//
// Promises: a change is written within a second, and the same again every Interval; the
// last record of a process that ends in order says so. The topic never holds work up: it
// is written beside it, and nothing waits for it.
//
// How a stage uses it:
//
//  1. Readiness comes by itself: what Health.Ready is told is a note for as long as it is
//     an error.
//  2. Backend names the part of readiness that stands for what the work needs (the
//     inference server, sandboxd). While it is not ready the group deadlines of
//     advantage-grouper stand still, so it must mean absence and nothing else: a backend
//     that is busy, or refuses a request, is not away.
//  3. Note and Clear say what else a person should see; Failed counts errors; Oldest gives
//     the record that has waited longest.
//
// A nil *Board takes everything and keeps nothing.
package status
