// Package sandboxd is only this page: a map of the daemon that runs untrusted
// Python, each program in a gVisor sandbox of its own.
//
// Reads: programs over a unix socket. Writes: results. Promises: one sandbox per
// call, never reused, unless told to let the calls of a trajectory share one; typed outcomes that the program cannot forge; nothing left
// behind. What is defended, by which mechanism and what is not: THREATMODEL.md.
// What a call costs, why, and what was tried: COSTS.md.
//
// # Where things are
//
//	cmd/sandboxd        the binary: serve, and `sandboxd run FILE.py`
//	client, api         what callers import: the client and the wire types
//	bench               prints the README's table
//	internal/command    the command line
//	internal/daemon     configuration, start, stop; the tests against real gVisor
//	internal/serve      a call from arrival to result; reservations
//	  httpapi             HTTP
//	  admission           who may run, who waits, who is sent away
//	  breaker             stops intake when the infrastructure fails
//	  pool                warm sandboxes, made off the callers' path
//	  keep                sandboxes of trajectories between their calls, for --isolation=trajectory
//	  metrics             what is counted
//	internal/sandbox    one sandbox: start, one program, end
//	  image               the warm images, and which one a program wants (pure)
//	  worker              the Python process that becomes the program
//	  verdict             how a call ended, from evidence (pure)
//	  output              the end of a stream, and its length
//	  plain               plain processes, for --isolation=process
//	internal/gvisor     boots, checkpoints and restores sandboxes
//	  runsc               gVisor's command lines
//	  bundle              the OCI specification as typed values
//	  rootfs              the read-only root: host's Python, directory or OCI image
//	  exitcall            hears from gVisor's kernel that the program exits
//	  control             asks gVisor's kernel how the program ended, if not by an exit
//	internal/host       what the daemon needs of the machine
//	  cgroup              memory, CPU and process limits; v1, v2 or none
//	  spawn               processes that die with the daemon
//	  reaper              collects what the daemon inherits of killed sandboxes
//	  proctree            looks at processes and their descendants
//	  state               the state folder: one daemon, and no survivors
//
// # What is not obvious
//
//   - The worker's protocol ends before the program begins. After that the
//     daemon believes gVisor and the control group, never a byte from inside.
//   - gVisor's kernel reports the program's exit call, and the end of each thread, as
//     it happens. Its answer to a wait comes 5 to 15 ms later, after it has taken the
//     memory apart, and the runtime's own exit 20 ms after that. Then the sandbox is
//     killed, which is cheaper than letting it end. If the runtime ends and nothing
//     was reported, the kernel died, and the program is not to blame.
//   - A restored sandbox rehearses a program's whole life before it counts as
//     ready: woken by its stdin, running, failing, writing, exiting (in a child).
//     The first time on each of these ways costs milliseconds, in gVisor more
//     than in Python. While callers wait it is left out, and refills get their full
//     share of the CPU.
//   - The worker hides from the program: it runs beside __main__, and its frames are
//     marked as not yet begun, which the interpreter leaves out of every stack.
//   - Each sandbox joins its control group before it executes anything, by way
//     of a one-line shell script, which works alike on v1 and v2.
//   - An overloaded pool is a queue: callers wait for the next restore, since
//     booting instead would cost several times the CPU.
package sandboxd
