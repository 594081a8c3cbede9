// Package schemas is the root of what every part of Sluice agrees on.
//
//   - sluice/v1 holds the protobuf sources, sluicev1 the Go generated from them
//   - identity names places in the work and derives ids and seeds
//   - codec turns messages into Kafka records and back, and refuses what is invalid
//   - tokens reads and writes the arrays of one value per token
//   - custody shows that a trajectory's tokens are those that were sampled
//   - archive keeps records outside Kafka
//   - clickhouse holds the tables and views
//
// This package itself has what all parts need to name things alike: EnumText.
package schemas
