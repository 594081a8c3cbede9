package kafka

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Whoever is told to stop while the brokers are away stops all the same, soon.
func TestStopWhileTheBrokersAreAway(t *testing.T) {
	for name, start := range map[string]func(w *world) *process{
		"share":   func(w *world) *process { return w.executor("a", 3, taking(time.Second)) },
		"classic": func(w *world) *process { return w.sampler("a", 4, sampling(time.Second)) },
		"keyed":   func(w *world) *process { return w.scorer("a", nil) },
		"broadcast": func(w *world) *process {
			return w.start("a", func(ctx context.Context, c ClusterConfig) error {
				return RunBroadcast(ctx, c, []string{"policy-updates"}, nil, func(Message) error { return nil })
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.put(calls(3)...)
				w.put(prompts(3)...)
				w.put(trajectories(0, 3)...)
				p := start(w)
				w.eventually("readiness", p.isReady)
				time.Sleep(10 * time.Second)
				w.broker.Close()
				time.Sleep(20 * time.Second)
				began := time.Now()
				if err := p.stop(); err != nil && !errors.Is(err, context.Canceled) {
					t.Errorf("stop: %v", err)
				}
				if took := time.Since(began); took > 10*time.Second {
					t.Errorf("stopping took %v", took)
				}
				w.startBroker()
			})
		})
	}
}

// joiners start one process of each kind of stage that joins a consumer group, by stage.
var joiners = map[string]func(w *world, instance string) *process{
	"sampler":        func(w *world, instance string) *process { return w.sampler(instance, 4, sampling(time.Second)) },
	"reward-scorer":  func(w *world, instance string) *process { return w.scorer(instance, nil) },
	"metrics-writer": func(w *world, instance string) *process { return w.start(instance, ranged(newStore(w.t), nil)) },
}

// Whoever is told to stop while the brokers hold its JoinGroup back, because another
// member is dead and not yet timed out, stops all the same, soon.
func TestStopWhileJoining(t *testing.T) {
	for stage, start := range joiners {
		t.Run(stage, func(t *testing.T) {
			inWorld(t, func(w *world) {
				dead := start(w, "a")
				w.eventually("readiness", dead.isReady)
				dead.kill()
				p := start(w, "b")
				time.Sleep(time.Second)
				if p.isReady() {
					t.Fatal("it has joined: the dead member did not hold it up")
				}
				began := time.Now()
				if err := p.stop(); err != nil {
					t.Errorf("stop: %v", err)
				}
				if took := time.Since(began); took > 4*time.Second {
					t.Errorf("stopping took %v", took)
				}
				// It left, for the others not to wait for it in their turn.
				if got, want := w.members(stage), []string{stage + "-a"}; !slices.Equal(got, want) {
					t.Errorf("members of the group: %v, want only the dead one, %v", got, want)
				}
			})
		})
	}
}

// Whoever comes back under its old instance waits for none of its predecessors, whenever
// they were killed, and puts nobody else out of the group.
func TestComingBackWaitsForNoPredecessor(t *testing.T) {
	for stage, start := range joiners {
		t.Run(stage, func(t *testing.T) {
			inWorld(t, func(w *world) {
				other := start(w, "other")
				w.eventually("readiness of another", other.isReady)
				for _, killed := range []time.Duration{20 * time.Second, 2 * time.Millisecond, 10 * time.Millisecond, 300 * time.Millisecond} {
					p := start(w, "a")
					time.Sleep(killed)
					p.kill()
				}
				began := time.Now()
				p := start(w, "a")
				w.eventually("readiness", p.isReady)
				if took := time.Since(began); took > 6*time.Second {
					t.Errorf("ready after %v", took)
				}
				got := w.members(stage)
				slices.Sort(got)
				if want := []string{stage + "-a", stage + "-other"}; !slices.Equal(got, want) {
					t.Errorf("members of the group: %v, want %v", got, want)
				}
				if !other.isReady() {
					t.Error("the other was put out")
				}
			})
		})
	}
}

// The same for one that has partitions and work in flight: the client commits nothing
// while it joins, so what is finished meanwhile is left to be done again.
func TestStopWhileJoiningAgain(t *testing.T) {
	// The work ends while the group is joining.
	busy := map[string]func(w *world, instance string) *process{
		"sampler": func(w *world, instance string) *process { return w.sampler(instance, 4, sampling(6*time.Second)) },
		"metrics-writer": func(w *world, instance string) *process {
			return w.start(instance, ranged(newStore(w.t), func(c *RangesConfig) {
				c.At = func(at RangeStep, _ Range) {
					if at == RangePending {
						time.Sleep(6 * time.Second)
					}
				}
			}))
		},
	}
	for stage, others := range map[string]string{"sampler": "code-results", "metrics-writer": "ppo-batches"} {
		t.Run(stage, func(t *testing.T) {
			inWorld(t, func(w *world) {
				p := busy[stage](w, "a")
				w.eventually("readiness", p.isReady)
				// A member that is alive and does not answer a rebalance.
				assigned, release := make(chan struct{}, 1), make(chan struct{})
				slow, err := NewClient(w.cluster(), "test", "slow",
					kgo.ConsumerGroup(testNamespace+w.top.Stages[stage].Group), kgo.ConsumeTopics(testNamespace+others),
					kgo.Balancers(kgo.CooperativeStickyBalancer()), kgo.RebalanceTimeout(3*time.Minute),
					kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, m map[string][]int32) {
						if len(m) > 0 {
							assigned <- struct{}{}
							<-release
						}
					}))
				if err != nil {
					t.Fatal(err)
				}
				defer slow.Close()
				defer close(release)
				<-assigned
				w.put(prompts(40)...)
				w.put(some(40, report)...)
				time.Sleep(500 * time.Millisecond) // the work has begun
				next := joiners[stage](w, "b")
				time.Sleep(5 * time.Second)
				if next.isReady() {
					t.Fatal("the group is not joining: nothing holds it up")
				}
				began := time.Now()
				if err := p.stop(); err != nil {
					t.Errorf("stop: %v", err)
				}
				if took := time.Since(began); took > 8*time.Second {
					t.Errorf("stopping took %v", took)
				}
			})
		})
	}
}

// members are the client ids of the members of a stage's group.
func (w *world) members(stage string) (ids []string) {
	w.t.Helper()
	cl, err := NewClient(w.cluster(), "test", "members")
	if err != nil {
		w.t.Fatal(err)
	}
	defer cl.Close()
	group := testNamespace + w.top.Stages[stage].Group
	groups, err := kadm.NewClient(cl).DescribeGroups(w.t.Context(), group)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, m := range groups[group].Members {
		ids = append(ids, m.ClientID)
	}
	return ids
}
