// Command bench measures sandboxd on this machine and prints the README's table.
//
// Reads: the sandboxd binary (it starts one of its own, in a temporary state
// folder), /usr/bin/python3, Docker where it is present. Writes: a Markdown
// table to stdout, progress to stderr. Promises: every row comes from this run;
// what could not be measured is named with its reason instead of a figure.
//
// Rows: a bare `python3 -B -c` subprocess; the program alone, in a fork of an
// interpreter that has run the image's preparation (what no sandbox of this kind
// can be faster than); `docker run`; a gVisor sandbox booted
// for the call; the warm pool at a rate that it can sustain (open loop: calls
// come by the clock, whatever the last one does); the pool under overload
// (closed loop with four times as many callers as slots). Latency is what a
// caller sees, waiting included.
package main
