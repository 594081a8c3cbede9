// Package machinetest runs a kafka.Machine in tests without a broker.
//
// It reads records of the machine's inputs and the moments at which its process is to
// die; it collects what was committed. A Partition does for one machine what the runner
// does: one transaction per call, restore from the changelog after a crash, refetch of
// earlier records. It promises the worst that the runner allows: a crash may fall
// between the machine's answer and the commit, in which case nothing of it remains.
package machinetest
