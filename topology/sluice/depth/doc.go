// Package depth measures how much work waits before each stage, and how fast it goes.
//
// It reads offsets of groups and topics and, where that is not enough, records. A
// plain lag (end - committed) is wrong for topics written in transactions: markers
// occupy offsets, so a stage that has done everything still seems to be one behind,
// for ever. Depth therefore counts the records themselves that a read_committed
// consumer would still be given; up to a limit of offsets per partition, beyond which
// it takes the lag and says that it is an upper bound. For share groups the broker
// knows the depth itself.
package depth
