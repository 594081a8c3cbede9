// Package access is how a program proves to Kafka who it is, and makes sure whom it
// speaks to: TLS, client certificates and SASL, by the same flags in every binary.
//
// It reads certificates, keys, passwords and tokens from files (or, for passwords and
// tokens, the environment) anew for every connection, so that all of them can be changed
// under a running process: what was opened before goes on, what is opened later has the
// new. It promises that no secret is in a flag, a log or an error, and that a setting
// which would have no effect is refused.
package access
