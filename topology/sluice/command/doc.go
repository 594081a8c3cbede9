// Package command is the command line of `sluice`: its sub-commands, their flags and
// what their exit status means. The work itself is in the packages beside it.
package command
