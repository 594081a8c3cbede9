// Package ui serves the pages of recorded and running work: `sluice ui`, which
// `sluice up` starts too.
//
// It reads ClickHouse (package ask: named questions, and statements of people) and Kafka
// (package live: depths, processes, single records), and writes nothing anywhere. What
// does not answer is said on the page, and the rest stays usable: without Kafka nothing
// live, without ClickHouse nothing recorded.
//
//	ask      questions to ClickHouse, with limits
//	live     how the system is now
//	guard    which requests are let through, and what a page may do
//	assets   the pages: one stylesheet, scripts as they are loaded, no build
//	docs     pictures of each page
//
// The front end is preact with htm and uPlot: small, maintained, usable as files without a
// build, and it writes text nodes, never markup. Python is parsed by lezer, which gives
// places in a text instead of markup. They lie in assets/vendor with their licences and
// versions; nothing is loaded from elsewhere.
//
// All that the policy and its programs wrote is hostile. Pages show it as text nodes only,
// which trusted types enforce (package guard); control characters and those that change
// the direction of text appear as symbols; long texts come in pieces.
//
// Promises: read-only; loopback unless told otherwise, and beyond it only with a token;
// a page asks the brokers at most once in two seconds and ClickHouse within limits that
// its user cannot raise, so that looking does not slow training.
package ui
