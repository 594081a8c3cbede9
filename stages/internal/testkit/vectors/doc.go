// Package vectors holds no code of the pipeline: its test compares Sluice's domain
// packages with recorded results of the ReTool recipe's own functions.
//
// It reads a folder of .jsonl files, one row per line, of the names that its table of
// checks knows (boxed, closing_overlap, observation, packing, parse, prepare,
// python_shuffle, rollouts), from the environment variable SLUICE_VECTORS
// (`make vectors DIR=...` sets it). It prints, per file, how many rows agree, how many
// differ where the design differs on purpose, and the first row that does not agree;
// it fails if there is any, and if the folder holds none of the files.
//
// Without the variable it runs on the few rows in testdata and the comparison with a
// folder is skipped.
package vectors
