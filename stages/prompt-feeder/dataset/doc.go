// Package dataset turns published problem sets into the rows that Sluice trains on,
// and reads those rows back.
//
// Reads: parquet (any compression of the format), Arrow (streams and files), JSONL and CSV,
// the latter two also compressed with gzip or zstd, and folders of Hugging Face datasets
// (saved by save_to_disk, or as the hub keeps them), in the layouts of DAPO/verl (prompt,
// reward_model.ground_truth, extra_info.index), GSM8K (question, answer with
// "#### reference"), plain {question or problem, answer}, TRL (prompt as text or messages
// beside answer, ground_truth or solution; messages with the assistant's for the answer), or
// by the names of fields. Several inputs make one set, with weights in their shares.
//
// Writes: train.jsonl and dev.jsonl with one {"id","question","answer","data_source"}
// per line, order.csv (which input row each line came from; of several inputs or files also
// which) and manifest.json (counts, refusals by reason, SHA-256 of each file).
//
// Promises: a row is either used as it is or refused with its number and a reason; an
// answer or id of 0 is a value, not a missing one; what is left out of a used row is
// counted; a compressed file, or an Arrow schema or batch, takes memory within bounds, whatever it claims;
// rows of several inputs name theirs, unless they name a source themselves; no question of dev.jsonl stands in train.jsonl, in whatever spelling; the same
// rows and seed give the same files, and where no question repeats, the split is that of
// Python's random.Random(seed).shuffle. Reading back takes memory for one row, whatever the
// size of the file.
package dataset
