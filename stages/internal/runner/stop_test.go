package runner

import (
	"context"
	"errors"
	"testing"
	"time"
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
