// Package cgroup gives every sandbox a control group of its own: a bound on
// memory, CPU and host processes, a count of what it used, and a way to kill
// all of it at once.
//
// Reads: /proc/self/cgroup, /proc/self/mountinfo. Writes: one parent group for
// the daemon, named after its state directory, and one child per sandbox.
// Promises: works on cgroup v1 and v2 below the daemon's own group; where it
// has no rights or no controllers, says which protections are missing and does
// nothing; touches no group that it did not make.
package cgroup
