// Package daemon is the life of an embedded server's process: flags, a log on standard
// error, a ready file while it serves, a clean stop on the first signal and a hard one
// on the second, an exit status that says why it ended.
package daemon
