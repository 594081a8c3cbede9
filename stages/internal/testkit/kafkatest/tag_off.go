//go:build !synctests

package kafkatest

// virtual: the Kafka client was built for testing/synctest.
const virtual = false
