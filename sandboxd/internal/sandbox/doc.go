// Package sandbox is one sandbox from its start to its removal: a process that
// reports ready, takes one program, and is then thrown away.
//
// Reads: the process's stdout and stderr, its control group, the runtime's log.
// Writes: the program to its stdin. Promises: one program at most; Run returns
// when the program has ended or a limit is reached; Destroy leaves no process,
// no control group and no file behind, whatever the program did.
package sandbox
