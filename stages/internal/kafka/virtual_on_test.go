//go:build synctests

package kafka

// virtualTime: the Kafka client was built for testing/synctest.
const virtualTime = true
