// Package clickhouse is the SQL side of the contracts: the tables and views that the
// metrics-writer fills, as numbered SQL files, and the migration that makes a database
// agree with them.
//
// tables/ holds one table per file. A file that was applied never changes again: a
// change to a table is a new file with the next number. views/ holds the views; they
// are replaced when they differ, and ViewsVersion rises with every change, so that an
// older build does not put its own back. A statement ends with a line that ends in ";".
//
// Promises: Migrate may be repeated and may run in several processes at once; it
// refuses a database of a newer build and one whose tables were made from other files,
// and then changes nothing. All tables and views are in one database of Sluice's own,
// and none of the files names it. Use one database per topic namespace: run ids of
// different namespaces may be the same.
//
// What a reader of the tables must know: rows are keyed by identity (place, copy, turn)
// and a row may rarely stand twice until ClickHouse merges it away, so read tables
// with FINAL; the views do.
//
// Replays have tables of their own, replay_*, by replay_id; no view of the original reads
// them. The views replay_pairs, replay_changes and replay_flips join the two.
package clickhouse
