//go:build !synctests

package runner

// virtualTime: the Kafka client waits on plain mutexes, on which a bubble's clock
// stands still.
const virtualTime = false
