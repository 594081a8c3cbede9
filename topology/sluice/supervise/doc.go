// Package supervise keeps a set of processes running on one machine.
//
// A Supervisor starts each Child in a process group of its own with its output in a
// file, waits until the child's ready file says that it can serve, restarts it with
// growing pauses when it dies, and stops it: SIGTERM first, SIGKILL to the whole group
// after a grace. A child whose exit status says that another try is useless (2: wrong
// use, 3: what it depends on is unusable), or that never became ready in several
// tries, ends the whole: Failed says so, with the last lines of its log.
//
// Promises: no process that it started is left when StopAll or KillAll returns. If the
// supervising process itself is killed, the kernel ends the children (parent death
// signal); grandchildren whose parent died come to the supervisor (subreaper) and are
// ended by it.
package supervise
