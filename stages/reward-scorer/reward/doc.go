// Package reward turns a finished trajectory's plain facts into rewards.
//
// It reads an Input, extracts the answer (package boxed), compares it with the
// reference (package mathverify) and hands the judged facts to named, versioned
// Scorers. A Set holds several at once: all are recorded, the first decides the
// advantage.
//
// It promises: end reasons that say nothing of the policy (protocol_fault,
// infra_error, prompt_too_long, refused) are never scored; a scorer that fails leaves the trajectory
// ungraded, it never pays 0 by accident; equal inputs give equal outputs.
// Logic written in CEL is in package expression, verifiers behind HTTP in
// package remote, the configuration file in package rewardfile.
package reward
