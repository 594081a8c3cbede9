// Package up runs a whole system on one machine: `sluice up`.
//
// It starts the binaries that production uses, each as a process of its own, in order
// of what they need: sluice-broker, sluice-clickhouse, sandboxd and simpolicy (each
// replaced by an address where one is given), the topics, then the stages. It shows
// how the run goes, and at its end prints a table that ClickHouse answers and one
// trajectory, and writes summary.json.
//
// Everything lies in one directory:
//
//	lock, run.json    who runs here, and which run it is
//	data/             broker, clickhouse, simpolicy, sandboxd
//	cache/            sandboxd's root file system, kept over runs
//	problems/         the prepared problem file
//	logs/             one file per process
//	ready/            one ready file per process, while it serves
//	summary.json      what came of the run
//	trash/            data of an earlier run while it is being removed
//
// Promises: an interrupted run goes on where it stopped, a finished one is followed by
// a new one; nothing that it started is left when it returns, whatever made it return;
// two directories can run at the same time.
package up
