// Package microbatch packs data of unequal lengths into micro-batches.
//
// It reads lengths in tokens and two limits; it writes, per micro-batch, which data it
// holds. A micro-batch is a rectangle: all its data are padded to the longest, so its
// cost is their count times that length. Packing is first-fit decreasing: from the
// longest datum to the shortest (ties in the order given), each goes into the first
// micro-batch with room.
//
// It promises: every datum stands in exactly one micro-batch; no micro-batch exceeds a
// limit; equal inputs give equal outputs.
package microbatch
