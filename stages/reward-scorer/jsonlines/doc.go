// Package jsonlines answers JSON objects line by line, for people and scripts.
//
// It reads lines, of which each holds one object, and writes one object for each, in
// order. A line that cannot be read (no such object, no UTF-8, half a surrogate pair, over
// 64 MiB) is handed on with its error, so that it is answered in its place; the lines
// behind it are still read.
//
// Lines that are there to read are answered together, up to a number that the caller says,
// and no more once they hold 8 MiB. Whatever was read is answered before another line is
// waited for, unless its beginning was read too; so a line that is typed has its answer at
// once. A file gives full batches; of a program that writes whole lines, a pipe holds 64
// KiB, which may be few long ones.
package jsonlines
