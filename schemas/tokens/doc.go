// Package tokens reads and writes the arrays of records that have one value per token.
//
// In records they are bytes: token ids are uint32 and logprobs and advantages float32,
// four bytes each, little-endian, without padding; policy versions are spans of a
// version and a count. So the protobuf library carries them without looking at them.
//
// Counting and reading single values (Count, ID, Float) copies nothing; ReadIDs and
// ReadFloats make slices. No function looks beyond the whole values that are there:
// whether an array's bytes are whole values, and as many as its neighbours', is checked
// where records are read (codec.Validate).
package tokens
