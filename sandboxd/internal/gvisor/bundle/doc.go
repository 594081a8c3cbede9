// Package bundle builds the OCI bundle of one kind of sandbox as typed values
// and writes its config.json.
//
// Reads: a root file system, an image's description and the limits. Writes:
// config.json. Promises: no host environment, no capability, no writable host
// path, an unprivileged user; the same inputs give the same bytes, which gVisor
// demands of a checkpoint and its restores.
package bundle
