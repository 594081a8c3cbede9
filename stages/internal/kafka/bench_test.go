package kafka

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
	"github.com/sluice-rl/sluice/topology"
)

// The benchmarks put the runner beside plain franz-go that moves the same records
// over the same hops on the same kind of broker: real TCP, kfake in memory.
//
//	go test -run '^$' -bench . -benchtime 5000x ./stages/internal/kafka

// benchCluster is a broker with the topology's topics, and the configuration for it.
func benchCluster(b *testing.B) ClusterConfig {
	b.Helper()
	top, err := topology.Default()
	if err != nil {
		b.Fatal(err)
	}
	opts := []kfake.Opt{kfake.NumBrokers(1), kfake.BrokerConfigs(map[string]string{"message.max.bytes": fmt.Sprint(top.MaxMessageBytes)})}
	for name, tp := range top.Topics {
		opts = append(opts, kfake.SeedTopics(tp.Partitions, name))
	}
	broker, err := kfake.NewCluster(opts...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(broker.Close)
	return ClusterConfig{Brokers: broker.ListenAddrs(), Topology: top, Instance: "bench"}
}

// fullTrajectory is one of about 40 kB, as it travels: four turns of code, with
// tokens, logprobs, versions and what the programs printed.
func fullTrajectory(n int) *sluicev1.Trajectory {
	t := trajectory(n)
	t.PromptTokens, t.Turns = nil, nil
	for i := range 600 {
		t.PromptTokens = tokens.AppendIDs(t.PromptTokens, uint32(i*7919%150000))
	}
	for turn := range 4 {
		k := &sluicev1.Turn{Kind: sluicev1.TurnKind_TURN_KIND_TOOL, Code: strings.Repeat("x = 1\n", 100),
			Text: strings.Repeat("think ", 300), Observation: strings.Repeat("1\n", 200),
			Execution: &sluicev1.Execution{CallId: fmt.Sprint(turn), Outcome: sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_OK, Stdout: strings.Repeat("1\n", 200)}}
		for i := range 680 {
			k.Tokens = tokens.AppendIDs(k.Tokens, uint32((i+n)*104729%150000))
			k.Logprobs = tokens.AppendFloats(k.Logprobs, -float32(i)/680)
			k.Versions = tokens.AppendVersion(k.Versions, 3, 1)
		}
		t.Turns = append(t.Turns, k)
	}
	return t
}

func fullCall(n int) *sluicev1.CodeCall {
	t := fullTrajectory(n)
	t.EndReason, t.FinalText = 0, ""
	return &sluicev1.CodeCall{Trajectory: t, CallId: fmt.Sprintf("call-%d", n)}
}

// fill writes b.N records of a topic and reports their size.
func fill(b *testing.B, c ClusterConfig, topic string, make func(int) proto.Message) {
	b.Helper()
	p, err := NewProducer(b.Context(), c, "bench")
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	// The brokers hand out whole batches, also to who may have one record of them:
	// calls are written one by one, as samplers do.
	batch := 256
	if topic == "code-calls" {
		batch = 1
	}
	for from := 0; from < b.N; from += batch {
		var out []Output
		for i := from; i < min(from+batch, b.N); i++ {
			out = append(out, Output{Topic: topic, Body: make(i), RoundRobin: topic == "code-calls"})
		}
		if err := p.Produce(b.Context(), out...); err != nil {
			b.Fatal(err)
		}
	}
	rec, err := codec.Encode(make(0))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(rec.Value)))
}

// until runs f until b.N has been counted.
func until(b *testing.B, f func(ctx context.Context, count func()) error) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var n atomic.Int64
	cpu := cpuTime(b)
	b.ResetTimer()
	err := f(ctx, func() {
		if n.Add(1) == int64(b.N) {
			cancel()
		}
	})
	b.StopTimer()
	if err != nil {
		b.Fatal(err)
	}
	if n.Load() < int64(b.N) {
		b.Fatalf("ended after %d of %d records", n.Load(), b.N)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
	b.ReportMetric(float64((cpuTime(b)-cpu).Microseconds())/1000/float64(b.N), "cpu-ms/record")
}

// cpuTime is what this process has used, the broker in it included. It says more than
// records per second on a machine that is shared.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

const benchSlots = 8

func BenchmarkShare(b *testing.B) {
	full := func(n int) proto.Message { return fullCall(n) }
	b.Run("runner", func(b *testing.B) {
		c := benchCluster(b)
		fill(b, c, "code-calls", full)
		until(b, func(ctx context.Context, count func()) error {
			return RunShare(ctx, ShareConfig{Cluster: c, Stage: "code-executor", Slots: benchSlots}, func(int) Handler {
				return HandlerFunc(func(_ context.Context, m Message) ([]Output, error) { count(); return result(m), nil })
			})
		})
	})
	variants(b, func(b *testing.B, forward func(*kgo.Record) *kgo.Record) {
		c := benchCluster(b)
		fill(b, c, "code-calls", full)
		producer := bare(b, c)
		if err := prepareShareGroup(b.Context(), producer, newState("bench", nil, c.log()), "code-executor", ShareConfig{Lock: 30 * time.Second}, c.log()); err != nil {
			b.Fatal(err)
		}
		until(b, func(ctx context.Context, count func()) error {
			var g errgroup.Group
			for range benchSlots {
				cl := bare(b, c, kgo.ShareGroup("code-executor"), kgo.ConsumeTopics("code-calls"), kgo.ShareMaxRecords(1), kgo.ShareMaxRecordsStrict())
				g.Go(func() error {
					for ctx.Err() == nil {
						for _, r := range cl.PollRecords(ctx, 1).Records() {
							out := forward(r)
							out.Topic = "code-results"
							if err := producer.ProduceSync(b.Context(), out).FirstErr(); err != nil {
								return err
							}
							r.Ack(kgo.AckAccept)
							count()
						}
					}
					cl.Close()
					return nil
				})
			}
			return g.Wait()
		})
	})
}

// variants runs plain franz-go twice: passing bytes on, and decoding and encoding each
// record as any stage must. What lies between the second and the runner is the runner.
func variants(b *testing.B, f func(*testing.B, func(*kgo.Record) *kgo.Record)) {
	b.Run("bare", func(b *testing.B) {
		f(b, func(r *kgo.Record) *kgo.Record { return &kgo.Record{Key: r.Key, Value: r.Value, Headers: r.Headers} })
	})
	b.Run("bare+codec", func(b *testing.B) {
		f(b, func(r *kgo.Record) *kgo.Record {
			m, err := codec.Decode(codec.Record{Key: r.Key, Value: r.Value, Headers: headers(r)})
			if err != nil {
				b.Error(err)
			}
			rec, err := codec.Encode(m)
			if err != nil {
				b.Error(err)
			}
			return &kgo.Record{Key: rec.Key, Value: rec.Value, Headers: r.Headers}
		})
	})
}

// bare is a client without anything of ours but the lack of linger.
func bare(b *testing.B, c ClusterConfig, opts ...kgo.Opt) *kgo.Client {
	b.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(c.Brokers...), kgo.ProducerLinger(0), kgo.ProducerBatchMaxBytes(c.Topology.MaxMessageBytes)}, opts...)...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(cl.Close)
	return cl
}

func BenchmarkClassic(b *testing.B) {
	results := func(n int) proto.Message { return result(Message{Body: fullCall(n), Attempt: 1})[0].Body }
	next := func(m Message) []Output {
		r := m.Body.(*sluicev1.CodeResult)
		return []Output{{Topic: "code-calls", RoundRobin: true, Body: &sluicev1.CodeCall{Trajectory: r.GetTrajectory(), CallId: r.GetCallId()}}}
	}
	b.Run("runner", func(b *testing.B) {
		c := benchCluster(b)
		fill(b, c, "code-results", results)
		until(b, func(ctx context.Context, count func()) error {
			return RunClassic(ctx, ClassicConfig{Cluster: c, Stage: "sampler", Concurrency: 256}, HandlerFunc(func(_ context.Context, m Message) ([]Output, error) {
				count()
				return next(m), nil
			}))
		})
	})
	variants(b, func(b *testing.B, forward func(*kgo.Record) *kgo.Record) {
		c := benchCluster(b)
		fill(b, c, "code-results", results)
		until(b, func(ctx context.Context, count func()) error {
			cl := bare(b, c, kgo.ConsumerGroup("sampler"), kgo.ConsumeTopics("code-results"), kgo.DisableAutoCommit(), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
			for ctx.Err() == nil {
				for _, r := range cl.PollRecords(ctx, 256).Records() {
					out := forward(r)
					out.Topic = "code-calls"
					cl.Produce(b.Context(), out, func(_ *kgo.Record, err error) {
						if err != nil {
							b.Error(err)
						}
						count()
					})
				}
				if err := cl.Flush(b.Context()); err != nil {
					return err
				}
				if err := cl.CommitUncommittedOffsets(b.Context()); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func BenchmarkKeyed(b *testing.B) {
	full := func(n int) proto.Message { return fullTrajectory(n) }
	b.Run("runner", func(b *testing.B) {
		c := benchCluster(b)
		fill(b, c, "trajectories", full)
		until(b, func(ctx context.Context, count func()) error {
			return RunKeyed(ctx, KeyedConfig{Cluster: c, Stage: "reward-scorer"}, func(p int32) Machine {
				return &counter{partition: p, step: func(*counter, Message, time.Time) error { count(); return nil }}
			})
		})
	})
	variants(b, func(b *testing.B, forward func(*kgo.Record) *kgo.Record) {
		c := benchCluster(b)
		fill(b, c, "trajectories", full)
		until(b, func(ctx context.Context, count func()) error {
			s, err := kgo.NewGroupTransactSession(kgo.SeedBrokers(c.Brokers...), kgo.ProducerLinger(0), kgo.ProducerBatchMaxBytes(c.Topology.MaxMessageBytes),
				kgo.TransactionalID("bare"), kgo.ConsumerGroup("reward-scorer"), kgo.ConsumeTopics("trajectories"),
				kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.Balancers(kgo.RangeBalancer()))
			if err != nil {
				return err
			}
			defer s.Close()
			for ctx.Err() == nil {
				records := s.PollRecords(ctx, 500).Records()
				if len(records) == 0 {
					continue
				}
				if err := s.Begin(); err != nil {
					return err
				}
				for _, r := range records {
					out := forward(r)
					out.Topic = "scored"
					s.Produce(b.Context(), out, nil)
					s.Produce(b.Context(), &kgo.Record{Topic: "reward-scorer-changelog", Key: []byte("n"), Value: []byte("1")}, nil)
				}
				if ok, err := s.End(b.Context(), kgo.TryCommit); err != nil || !ok {
					return fmt.Errorf("not committed: %w", err)
				}
				for range records {
					count()
				}
			}
			return nil
		})
	})
}

// One tool call through Kafka: the sampler's record to a slot of the executor and its
// answer back into a classic worker, one at a time.
func BenchmarkToolCallLatency(b *testing.B) {
	report := func(b *testing.B, took []time.Duration) {
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	}
	b.Run("runner", func(b *testing.B) {
		c := benchCluster(b)
		back := make(chan struct{}, 1)
		ctx, cancel := context.WithCancel(b.Context())
		var g errgroup.Group
		g.Go(func() error {
			return RunShare(ctx, ShareConfig{Cluster: c, Stage: "code-executor", Slots: benchSlots}, func(int) Handler {
				return HandlerFunc(func(_ context.Context, m Message) ([]Output, error) { return result(m), nil })
			})
		})
		g.Go(func() error {
			return RunClassic(ctx, ClassicConfig{Cluster: c, Stage: "sampler"}, HandlerFunc(func(context.Context, Message) ([]Output, error) { back <- struct{}{}; return nil, nil }))
		})
		p, err := NewProducer(ctx, c, "bench")
		if err != nil {
			b.Fatal(err)
		}
		call := fullCall(0)
		round := func() time.Duration {
			start := time.Now()
			if err := p.Produce(ctx, Output{Topic: "code-calls", Body: call, RoundRobin: true}); err != nil {
				b.Fatal(err)
			}
			<-back
			return time.Since(start)
		}
		for range 50 {
			round()
		}
		b.ResetTimer()
		var took []time.Duration
		for b.Loop() {
			took = append(took, round())
		}
		report(b, took)
		cancel()
		p.Close()
		if err := g.Wait(); err != nil {
			b.Error(err)
		}
	})
	b.Run("bare", func(b *testing.B) {
		c := benchCluster(b)
		p := bare(b, c)
		if err := prepareShareGroup(b.Context(), p, newState("bench", nil, c.log()), "code-executor", ShareConfig{Lock: 30 * time.Second}, c.log()); err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithCancel(b.Context())
		var g errgroup.Group
		for range benchSlots {
			cl := bare(b, c, kgo.ShareGroup("code-executor"), kgo.ConsumeTopics("code-calls"), kgo.ShareMaxRecords(1), kgo.ShareMaxRecordsStrict())
			g.Go(func() error {
				for ctx.Err() == nil {
					for _, r := range cl.PollRecords(ctx, 1).Records() {
						if err := p.ProduceSync(b.Context(), &kgo.Record{Topic: "code-results", Key: r.Key, Value: r.Value}).FirstErr(); err != nil {
							return err
						}
						r.Ack(kgo.AckAccept)
					}
				}
				return nil
			})
		}
		back := bare(b, c, kgo.ConsumerGroup("sampler"), kgo.ConsumeTopics("code-results"))
		rec, err := codec.Encode(fullCall(0))
		if err != nil {
			b.Fatal(err)
		}
		round := func() time.Duration {
			start := time.Now()
			if err := p.ProduceSync(b.Context(), &kgo.Record{Topic: "code-calls", Key: rec.Key, Value: rec.Value}).FirstErr(); err != nil {
				b.Fatal(err)
			}
			back.PollRecords(b.Context(), 1)
			return time.Since(start)
		}
		for range 50 {
			round()
		}
		b.ResetTimer()
		var took []time.Duration
		for b.Loop() {
			took = append(took, round())
		}
		report(b, took)
		cancel()
		if err := g.Wait(); err != nil {
			b.Error(err)
		}
	})
}

// Memory of one idle slot: a client with its connections and goroutines.
func BenchmarkMemoryPerSlot(b *testing.B) {
	const slots = 64
	for b.Loop() {
		c := benchCluster(b)
		inUse := func() uint64 {
			runtime.GC()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc + m.StackInuse
		}
		before := inUse()
		ctx, cancel := context.WithCancel(b.Context())
		var g errgroup.Group
		var ready atomic.Int32
		c.Ready = func(_ string, err error) {
			if err == nil {
				ready.Add(1)
			}
		}
		g.Go(func() error {
			return RunShare(ctx, ShareConfig{Cluster: c, Stage: "code-executor", Slots: slots}, func(int) Handler { return nil })
		})
		for ready.Load() < slots {
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(time.Second)
		// The broker of the benchmark lives in this process: its side of the
		// connections is in the figure too.
		b.ReportMetric(float64(inUse()-before)/slots/1024, "kB/slot")
		b.ReportMetric(float64(runtime.NumGoroutine())/slots, "goroutines/slot")
		cancel()
		if err := g.Wait(); err != nil {
			b.Error(err)
		}
	}
}
