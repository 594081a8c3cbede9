// Package process is the life of a binary: every program here is a Command that Main
// runs, and so has the same settings, help, log, signals, health and exit codes.
//
//  1. A setting is a flag; without the flag the variable SLUICE_ and its name; without
//     that the key of its name in the YAML file of --config; else its default. Secrets
//     come from files and variables only: see Secret.
//  2. The log goes to standard error, as text or JSON; what was asked for to standard
//     output.
//  3. The first SIGINT, SIGTERM or SIGHUP ends the context of Run; the second ends the
//     process, or is left to a Run that says so (Command.StopsItself).
//  4. A program that serves has /healthz, /readyz and /metrics on one address, and a
//     ready file that is there, whole, while it is ready: see Life.
//  5. The exit code says why it ended: see the table in exit.go.
//
// Package readyfile writes and reads ready files, package lock holds a directory for
// one process. Nothing here knows of the pipeline; sandboxd uses it, too.
package process
