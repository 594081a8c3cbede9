// Package clickhouse is sluice-clickhouse: the ClickHouse engine as a server on
// this machine's loopback, for demos, tests and single machines.
//
// It reads a data directory, and serves ClickHouse's HTTP and native protocols on
// 127.0.0.1 until it is stopped. What is not obvious:
//
//   - Two processes. The one that was started looks after things: it claims the
//     directory, makes passwords, waits until the engine answers, writes the ready
//     file, and stops. Its child is the engine. A crash of the engine's C++ ends the
//     child only; the parent says why and starts another on the same ports, unless it
//     dies again and again: then exit status and last words say why. (It does crash:
//     of a native client that names an unknown database, or that is killed in
//     mid-insert, libchdb 26.7.3 aborts. Clients over HTTP do it no harm, so let those
//     that write use HTTP.)
//   - A pipe holds them together. The child stops cleanly when the pipe closes, which
//     the kernel does even where the parent was killed; should the child hang, a
//     death signal and a deadline end it.
//   - Started as root, the child gives up root before it loads the engine: the engine
//     can be asked to read any file that its process can. Where the data directory
//     lies behind a directory that only root may enter, the child binds it to a path
//     in a mount namespace of its own first.
//   - The engine's own session is user "default", without a password: a password there
//     ends the process. So default may do nothing but start the listeners and wait.
//     Rows are written by "writer", read by "reader", both with random passwords that
//     stay the same over restarts and lie in files of mode 0600. "pages" reads one
//     database within limits that no query can raise, and after everybody else: it is
//     for what people ask by hand.
//   - The working directory is an empty one, because the engine's database "default"
//     shows files of the working directory as tables. Make a database of your own.
//
// Promises: what the server acknowledged is there after kill -9; a directory of a newer
// layout or engine is refused and left untouched.
package clickhouse
