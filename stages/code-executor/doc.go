// Command code-executor runs the programs that the policy wrote.
//
// Reads code-calls from a share group, or from a classic one where the brokers have no
// share groups; writes code-results, trajectories that it had to give up, and code-calls
// that go back. Promises: a call runs in a sandbox of its own; a sandbox's own failure is
// never shown to the policy but retried in a fresh one, and in the end the trajectory ends
// as infra_error, or as sandbox_broken where the program makes the sandbox's kernel die, twice;
// the program's time never includes waiting; an execution says how many
// attempts came before it of which nobody knows whether the program ran.
//
// # Places
//
// One slot is one member of the share group and one record in hand. One slot of a process
// at a time reserves a place at sandboxd and asks for a record; with one in hand it makes
// way for the next. So an idle process holds one place. It is sandboxd that decides who
// has a place:
//
//   - Who has a call in hand comes first and takes the place of an idle slot. A slot
//     whose place was lost with its record in hand runs it as such a call. As programs
//     end, the first of those that wait always moves, whatever the idle slots hold.
//   - An idle slot loses its place to one that waits, stops asking, and comes back after
//     a pause that grows as long as it finds nothing.
//   - Namespaces share the places evenly.
//
// A call that cannot be run here is written anew to the end of code-calls and its record
// accepted, never released: a release costs a delivery, of which the brokers allow few,
// and the count of attempts stands in the record (see attempts.go of
// stages/internal/kafka). It goes back when it has waited --patience for a place, which
// costs no attempt, since nothing was begun and others may have one; when its connection
// was cut after its program was sent, which costs one; and when the stage stops before it
// was begun.
package main
