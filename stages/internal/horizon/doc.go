// Package horizon bounds what a keyed stage remembers of work that is over.
//
// It reads which steps of which runs are seen and which state keys belong to a finished
// step; it answers which keys may be forgotten, and which steps lie behind the horizon,
// so that what still arrives of them is late.
//
// It promises: per run and incarnation the last `keep` steps are remembered; the answer
// depends on the keys and steps given only, not on their order, so that a restored
// stage forgets what it would have forgotten without the restart.
package horizon
