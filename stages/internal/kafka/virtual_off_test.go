//go:build !synctests

package kafka

// virtualTime: the Kafka client waits on plain mutexes, on which a bubble's clock
// stands still.
const virtualTime = false
