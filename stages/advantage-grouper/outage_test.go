package main

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

func report(stage, instance string, away bool) *sluicev1.StageStatus {
	s := &sluicev1.StageStatus{Stage: stage, Instance: instance, IntervalMs: 10_000}
	if away {
		s.Notes = []*sluicev1.StatusNote{{Name: "backend", Text: "connection refused", Endpoint: "http://there", NotReady: true, BackendAway: true}}
	}
	return s
}

// While what the stages before need is away no deadline passes; afterwards the rest of the
// time runs.
func TestTheDeadlineStandsStillDuringAnOutage(t *testing.T) {
	p := newPartition(t)
	hear := func(s *sluicev1.StageStatus) { t.Helper(); p.must(p.Broadcast("stage-status", s)) }
	pass := func(d time.Duration) {
		t.Helper()
		for end := p.Now.Add(d); p.Now.Before(end); {
			p.Now = p.Now.Add(time.Second)
			p.must(p.Settle())
		}
	}
	p.must(p.Settle())
	p.prompt(1, 0, 2)
	hear(report("sampler", "a", false))
	pass(deadline - time.Minute)
	for range 60 { // an hour, said every minute, but it is silent for half of each
		hear(report("sampler", "a", true))
		pass(10 * time.Second)
		hear(report("sampler", "a", true))
		pass(10 * time.Second)
	}
	p.expect()
	hear(report("sampler", "a", false))
	pass(59 * time.Second)
	p.expect()
	pass(time.Second)
	p.expect("closed run.0/1/0 dropped deadline: missing missing")
}

func TestAProcessThatVanishedHoldsNothingUp(t *testing.T) {
	p := newPartition(t)
	p.must(p.Settle())
	p.prompt(1, 0, 2)
	p.must(p.Broadcast("stage-status", report("sampler", "a", true)))
	p.Now = p.Now.Add(deadline + 29*time.Second)
	p.must(p.Settle())
	p.expect()
	p.Now = p.Now.Add(time.Second)
	p.must(p.Settle())
	p.expect("closed run.0/1/0 dropped deadline: missing missing")
}

// Samplers hold partitions of their own, executors take calls from one another.
func TestWhoIsAway(t *testing.T) {
	ended := report("sampler", "b", true)
	ended.Stopped = true
	for _, c := range []struct {
		name    string
		reports []*sluicev1.StageStatus
		want    string
	}{
		{"nobody said anything", nil, ""},
		{"all is well", []*sluicev1.StageStatus{report("sampler", "a", false), report("code-executor", "a", false)}, ""},
		{"one of two samplers", []*sluicev1.StageStatus{report("sampler", "a", false), report("sampler", "b", true)}, "sampler/b: backend http://there: connection refused"},
		{"one of two executors", []*sluicev1.StageStatus{report("code-executor", "a", false), report("code-executor", "b", true)}, ""},
		{"both executors", []*sluicev1.StageStatus{report("code-executor", "a", true), report("code-executor", "b", true)}, "code-executor/b"},
		{"it came back", []*sluicev1.StageStatus{report("sampler", "a", true), report("sampler", "a", false)}, ""},
		{"it ended", []*sluicev1.StageStatus{report("sampler", "b", true), ended}, ""},
		{"another stage", []*sluicev1.StageStatus{report("metrics-writer", "a", true)}, ""},
	} {
		o := newOutages()
		for _, r := range c.reports {
			o.hear(r, start)
		}
		if why, _ := o.away(start); !strings.HasPrefix(why, c.want) || (why == "") != (c.want == "") {
			t.Errorf("%s: %q, want %q", c.name, why, c.want)
		}
	}
}

// However often the clock is read, it counts the seconds in which nobody was away.
func TestTheClockAgainstSeconds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		often, seldom := clock{outages: newOutages()}, clock{outages: newOutages()}
		naive, now := time.Duration(0), start
		often.to(now)
		seldom.to(now)
		for range rapid.IntRange(1, 20).Draw(t, "events") {
			s := report(rapid.SampledFrom([]string{"sampler", "code-executor"}).Draw(t, "stage"),
				rapid.SampledFrom([]string{"a", "b"}).Draw(t, "instance"), rapid.Bool().Draw(t, "away"))
			often.to(now)
			seldom.to(now)
			often.outages.hear(s, now)
			seldom.outages.hear(s, now)
			for range rapid.IntRange(0, 60).Draw(t, "seconds") {
				if why, _ := often.outages.away(now); why == "" {
					naive += time.Second
				}
				now = now.Add(time.Second)
				often.to(now)
			}
		}
		seldom.to(now)
		if often.counted != naive || seldom.counted != naive {
			t.Fatalf("counted %s second by second and %s seldom, want %s", often.counted, seldom.counted, naive)
		}
		if at, ok := seldom.when(seldom.counted); ok && at.Before(now) {
			t.Fatalf("what is due now is due at %s, before now", at)
		}
	})
}
