// Command metrics-writer puts what happened into ClickHouse.
//
// It reads the topics scored, grouped, ppo-batches, trainer-reports,
// trainer-annotations, policy-updates and dead-letters (committed records only), and writes rows of the tables of
// schemas/clickhouse; what does not decode goes to dead-letters.
//
// It promises that every record's rows are there once, whatever was killed: a range of
// offsets is committed as pending in Kafka, inserted into each table under a token made
// of database, topic, partition, range and table, and only then committed; after a
// crash the same range is formed again first, and ClickHouse drops the inserts that it
// knows. An outage of ClickHouse is waited for and stops nothing upstream. A ClickHouse
// that refuses us at start ends the stage, as waiting does not change a password; once it
// has worked, a refusal may be a change under way and is waited for like an outage.
package main
