// Package rows says what a record becomes in ClickHouse: rows of the tables that
// schemas/clickhouse defines.
//
// It reads messages of the topics that metrics-writer follows, and gives rows. The same
// record always gives the same rows. Everything a model or a program wrote goes into
// columns as it is; nothing here is ever part of a statement.
package rows
