// Package daemon is sandboxd itself: its configuration, and the order in which
// its parts start and stop.
//
// Reads: flags, environment, a configuration file, the state directory. Writes:
// the state directory, a unix socket, logs. Promises: it takes calls only after
// a real program has run; on the first SIGINT or SIGTERM it takes no new call,
// lets running ones finish within --drain-timeout and leaves nothing behind; on
// the second it ends them at once; its exit code tells why it ended.
package daemon
