// Package rootfs makes the read-only root file system that every sandbox sees:
// a Python interpreter, its standard library and packages, the shared libraries
// they need, and nothing else of the host.
//
// Reads: the host's Python installation, a directory, or an OCI image from a
// registry. Writes: one immutable EROFS image (or, without mkfs.erofs, one
// directory) under the cache folder, named by a hash of what went in. Promises:
// a second call with the same inputs writes nothing; a half-written root is
// never used; no setuid bit, device node or path outside the root gets in.
package rootfs
