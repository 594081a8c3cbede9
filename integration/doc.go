// Package integration drives the built binaries (bin/, made by `make build`) as an
// operator would: through flags, files, Kafka and SQL. It imports no stage.
//
// The loop is run with three ways to get services:
//
//	embedded    sluice up starts its own broker, ClickHouse, sandboxd and policy
//	addresses   given by -brokers, -clickhouse-addr, -clickhouse-user and
//	            -clickhouse-password-file; without them the suite starts Apache
//	            Kafka (what `make kafka` installed) and sluice-clickhouse itself
//	containers  apache/kafka and clickhouse/clickhouse-server through testcontainers,
//	            where Docker runs and has the images; skipped with the reason otherwise
//
// In each, every stage is killed once in mid-run, and so is the broker where the suite
// started it; what was fed is then compared with what Kafka and ClickHouse hold in the
// end: every trajectory counts exactly once at its place, with its fate.
package integration
