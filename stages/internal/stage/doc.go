// Package stage is what every stage binary is made of around its own work: flags,
// environment and configuration file, logs, health and metrics, signals and exit
// codes.
//
// It reads the command line, SLUICE_* variables and one YAML file; it serves
// /healthz, /readyz and /metrics on loopback; it promises that a stage's Run gets a
// context that ends at the first signal, and that the exit code says why the
// process ended.
package stage
