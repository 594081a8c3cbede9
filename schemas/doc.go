// Package schemas is the root of what every part of Sluice agrees on.
//
//   - sluice/v1 holds the protobuf sources, sluicev1 the Go generated from them
//   - identity names places in the work and derives ids and seeds
//   - codec turns messages into Kafka records and back, and refuses what is invalid
//   - clickhouse holds the tables and views
package schemas
