// Package archive keeps records outside Kafka, so that they outlive retention and can be
// replayed.
//
// An archive is a folder with one file per topic, scored.jsonl or scored.parquet, or one
// such file alone. Each row is one record with where it lay: topic (without namespace),
// partition, offset, time in milliseconds, key, headers, value. Rows stand by partition
// and offset. Nothing is lost: a record that is read back has the same bytes.
//
//   - JSON lines, to look into, begin with {"archive_format":1}. A row holds "type",
//     "schema" and "message", the decoded message in protobuf's JSON (with arrays of one
//     value per token as base64), where that gives the same bytes back; otherwise (unknown
//     fields of a newer version, undecodable bytes) it holds "raw": key, headers and value
//     as base64.
//   - Parquet files, several times faster, bear the metadata sluice.archive.format=1. The column value is the
//     encoded message; run_id, step and the like repeat what the record says of itself,
//     for those who look for rows with other tools, and are not read back.
//
// A newer version of Sluice reads what an older one archived; an archive of a newer
// format is refused. Package archive/topic reads records from Kafka.
package archive
