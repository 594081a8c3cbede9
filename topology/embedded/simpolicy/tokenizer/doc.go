// Package tokenizer is simpolicy's own tokenizer: small, fixed, and lossless on any
// bytes.
//
// Ids: 0 to 255 are the bytes; the added tokens follow from 256, named as Qwen names
// them; pieces of vocabulary.txt, in the file's order, from 320. The file is only
// ever appended to, so that an id keeps its meaning.
//
// Text is cut at added tokens first, then taken greedily, the longest piece first,
// with single bytes where no piece fits.
//
// Promises: Decode(Encode(s)) == s for every string, valid UTF-8 or not; encoding is
// a function of the text alone; every id is below 2^31.
package tokenizer
