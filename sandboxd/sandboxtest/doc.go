// Package sandboxtest is sandboxd for tests of what uses it: the daemon's own HTTP,
// admission and service in this process, over connections in memory, so that it works
// in testing/synctest's virtual time too. What is scripted is the programs: nothing is
// run, and there is no sandbox.
//
// Reads and writes: nothing outside the process. Promises: callers are admitted, made to
// wait, evicted and refused as by sandboxd; Kill cuts every connection at once, as
// SIGKILL does, and Start begins anew, knowing nothing of what was.
package sandboxtest
