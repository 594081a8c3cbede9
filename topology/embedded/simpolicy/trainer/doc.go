// Package trainer is simpolicy's trainer on Kafka.
//
// Reads ppo-batches (one run's records, read_committed, all partitions, no group: the
// position is kept with the parameters), writes trainer-reports and policy-updates.
//
// For each StepBatch with all its micro-batches it
//
//  1. trains, or only measures where frozen or where there is nothing to train on,
//  2. saves parameters, optimizer, answer and position in one file,
//  3. hands the new policy to the inference server,
//  4. publishes the report, then the update,
//  5. saves that the answer is published.
//
// Promises: every StepBatch is answered, with the same version where nothing was
// trained; a crash between any two of these steps trains no step twice and leaves
// none unanswered (an answer not known to be published is published again, alike); a
// StepBatch seen again is answered again from the saved state. A record that cannot
// be read is logged and counted; the step that misses it is answered untrained.
package trainer
