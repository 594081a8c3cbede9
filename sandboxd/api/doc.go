// Package api holds the wire types of sandboxd: what a caller asks for, what
// comes back, and the closed list of outcomes. It reads and writes nothing and
// imports only the standard library, so that both ends can share it.
//
// # Byte streams in JSON
//
// A program's stdout and stderr are bytes, not text. [Stream] keeps the last
// bytes of one stream exactly and travels as JSON without losing any:
//
//   - "stdout" is the kept part as a JSON string. Every byte that is not part
//     of valid UTF-8 appears there as U+FFFD, so that it can always be printed.
//   - "stdout_base64" is present only if the kept part is not valid UTF-8, and
//     holds its exact bytes.
//   - "stdout_bytes" counts all bytes the program wrote and the daemon read,
//     kept or not; "stdout_truncated" says that fewer were kept.
//
// The same holds for stderr.
package api
