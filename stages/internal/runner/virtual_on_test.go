//go:build synctests

package runner

// virtualTime: the Kafka client was built for testing/synctest.
const virtualTime = true
