package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/topology"
)

// testNamespace shows that nothing forgets the prefix.
const testNamespace = "t."

// world is a broker on a network of its own, in virtual time.
type world struct {
	t      testing.TB
	net    *kfake.VirtualNetwork
	top    topology.Topology
	opts   []kfake.Opt
	broker *kfake.Cluster
	log    *slog.Logger
	procs  []*process
	// brokers are where stages look for it; net is nil in real time.
	brokers []string
}

// inWorld runs a test in a bubble of virtual time with a broker that has the
// topology's topics.
func inWorld(t *testing.T, f func(w *world), opts ...kfake.Opt) {
	t.Helper()
	if !virtualTime {
		t.Skip("needs `go test -tags synctests`: the Kafka client's mutexes stop a bubble's clock otherwise")
	}
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, append(opts, kfake.DataDir(dir))...)
		defer w.close()
		f(w)
	})
}

func newWorld(t testing.TB, opts ...kfake.Opt) *world {
	w := newWorldWithout(t)
	top := w.top
	w.net, w.brokers = &kfake.VirtualNetwork{}, []string{"127.0.0.1:9092"}
	w.opts = append(append([]kfake.Opt{}, opts...), kfake.NumBrokers(1), kfake.Ports(9092), kfake.ListenFn(w.net.Listen),
		kfake.BrokerConfigs(map[string]string{
			"share.record.lock.sweep.interval.ms": "500",
			"message.max.bytes":                   fmt.Sprint(top.MaxMessageBytes),
		}))
	for name, tp := range top.Topics {
		w.opts = append(w.opts, kfake.SeedTopics(tp.Partitions, testNamespace+name))
	}
	w.startBroker()
	return w
}

// newWorldWithout is a world whose broker is not there yet.
func newWorldWithout(t testing.TB) *world {
	top, err := topology.Default()
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, top: top, log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))}
}

func (w *world) startBroker() {
	w.t.Helper()
	c, err := kfake.NewCluster(w.opts...)
	if err != nil {
		w.t.Fatal(err)
	}
	w.broker = c
}

// restartBroker takes the broker away for a while.
func (w *world) restartBroker(away time.Duration) {
	w.t.Helper()
	w.broker.Close()
	time.Sleep(away)
	w.startBroker()
}

func (w *world) close() {
	for _, p := range w.procs {
		p.stop()
	}
	w.broker.Close()
}

func (w *world) cluster() ClusterConfig {
	return ClusterConfig{Brokers: w.brokers, Namespace: testNamespace, Topology: w.top, Dialer: w.dial, Log: w.log}
}

func (w *world) dial(ctx context.Context, network, host string) (net.Conn, error) {
	if w.net == nil {
		return (&net.Dialer{}).DialContext(ctx, network, host)
	}
	return w.net.DialContext(ctx, network, host)
}

// process is a stage that can be stopped, or killed as the brokers see it: its
// connections go away and none come back.
type process struct {
	w       *world
	cluster ClusterConfig
	cancel  context.CancelFunc
	done    chan error

	mu    sync.Mutex
	cut   bool
	conns []net.Conn
	err   error
	ended bool
	ready map[string]error
}

func (w *world) start(instance string, run func(context.Context, ClusterConfig) error) *process {
	p := &process{w: w, cluster: w.cluster(), done: make(chan error, 1), ready: map[string]error{}}
	p.cluster.Instance = instance
	p.cluster.Dialer = p.dial
	p.cluster.Log = w.log.With("process", instance)
	p.cluster.Metrics = prometheus.NewRegistry()
	p.cluster.Ready = func(name string, err error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.ready[name] = err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	w.procs = append(w.procs, p)
	go func() { p.done <- run(ctx, p.cluster) }()
	return p
}

func (p *process) dial(ctx context.Context, network, host string) (net.Conn, error) {
	p.mu.Lock()
	cut := p.cut
	p.mu.Unlock()
	if cut {
		return nil, fmt.Errorf("process is gone")
	}
	c, err := p.w.dial(ctx, network, host)
	if err == nil {
		p.mu.Lock()
		p.conns = append(p.conns, c)
		p.mu.Unlock()
	}
	return c, err
}

// kill makes the process vanish from the network; what is left of it is ended.
func (p *process) kill() {
	p.mu.Lock()
	p.cut = true
	conns := p.conns
	p.mu.Unlock()
	for _, c := range conns {
		c.Close()
	}
	p.cancel()
}

// stop ends the process in order and returns what its run returned.
func (p *process) stop() error {
	p.cancel()
	return p.wait()
}

func (p *process) wait() error {
	if !p.ended {
		p.err, p.ended = <-p.done, true
	}
	return p.err
}

func (p *process) isReady() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, err := range p.ready {
		if err != nil {
			return false
		}
	}
	return len(p.ready) > 0
}

// eventually waits, in virtual time, until something holds.
func (w *world) eventually(what string, holds func() bool) {
	w.t.Helper()
	for start := time.Now(); time.Since(start) < 10*time.Minute; {
		if holds() {
			return
		}
		time.Sleep(max(50*time.Millisecond, time.Since(start)/20))
	}
	w.t.Fatalf("never came true in 10 min: %s", what)
}

// put writes messages as a producer would.
func (w *world) put(outputs ...Output) {
	w.t.Helper()
	p, err := NewProducer(w.t.Context(), w.cluster(), "test")
	if err != nil {
		w.t.Fatal(err)
	}
	defer p.Close()
	for {
		err := p.Produce(w.t.Context(), outputs...)
		if err == nil {
			return
		}
		if !errors.Is(err, kerr.UnknownServerError) { // a fault of the test's own
			w.t.Fatal(err)
		}
	}
}

// putRaw writes a record as it is.
func (w *world) putRaw(r *kgo.Record) {
	w.t.Helper()
	cl, err := NewClient(w.cluster(), "test", "raw")
	if err != nil {
		w.t.Fatal(err)
	}
	defer cl.Close()
	r.Topic = testNamespace + r.Topic
	if err := cl.ProduceSync(w.t.Context(), r).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
}

// read returns all committed messages of a topic, in order within each partition.
func (w *world) read(topic string) []proto.Message {
	w.t.Helper()
	c := w.cluster()
	c.Log = nil
	cl, err := NewClient(c, "test", "reader")
	if err != nil {
		w.t.Fatal(err)
	}
	defer cl.Close()
	all, err := c.logBounds(w.t.Context(), cl, topic)
	if err != nil {
		w.t.Fatal(err)
	}
	spans := map[int32]span{}
	for p, b := range all[topic] {
		spans[p] = span{b.start, b.stable}
	}
	var ms []proto.Message
	err = c.readSpans(w.t.Context(), "test", "reader", topic, spans, func(r *kgo.Record) error {
		m, err := Decode(c, r)
		ms = append(ms, m.Body)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return ms
}

// The messages of the tests.

func prompt(step uint64, slot uint32) *sluicev1.Prompt {
	return &sluicev1.Prompt{
		Group:     &sluicev1.GroupPlace{RunId: "run", Step: step, Slot: slot},
		Problem:   &sluicev1.Problem{QuestionId: fmt.Sprintf("q%d", slot), Question: "1+1?", Answer: "2", DataSource: "test"},
		GroupSize: 8, GroupsInStep: 1 << 20, Mode: sluicev1.Mode_MODE_TRAIN,
		Budgets:     &sluicev1.Budgets{CodeCalls: 4, Turns: 6, TrajectoryTokens: 8192, TurnTokens: 1024, ObservationTokens: 512, ExecutionTimeoutMs: 30000},
		Sampling:    &sluicev1.SamplingParameters{Temperature: 1, TopP: 1},
		ToolEnabled: true, ToolProtocol: "qwen",
	}
}

// trajectory is the n-th of a family of ended trajectories.
func trajectory(n int) *sluicev1.Trajectory {
	return &sluicev1.Trajectory{
		Prompt: prompt(1, uint32(n/8)), SampleIndex: uint32(n % 8), Copy: uint64(n + 1),
		Turns:     []*sluicev1.Turn{{Kind: sluicev1.TurnKind_TURN_KIND_TOOL, Code: "print(1)"}},
		EndReason: sluicev1.EndReason_END_REASON_ANSWER, FinalText: fmt.Sprint(n),
	}
}

func call(n int) *sluicev1.CodeCall {
	t := trajectory(n)
	t.EndReason, t.FinalText = 0, ""
	return &sluicev1.CodeCall{Trajectory: t, CallId: fmt.Sprintf("call-%04d", n)}
}

func calls(n int) []Output {
	out := make([]Output, n)
	for i := range out {
		out[i] = Output{Topic: "code-calls", Body: call(i), RoundRobin: true}
	}
	return out
}

// result is the output for a call.
func result(m Message) []Output {
	c := m.Body.(*sluicev1.CodeCall)
	return []Output{{Topic: "code-results", Body: &sluicev1.CodeResult{
		Trajectory: c.GetTrajectory(), CallId: c.GetCallId(),
		Execution: &sluicev1.Execution{CallId: c.GetCallId(), Outcome: sluicev1.ExecutionOutcome_EXECUTION_OUTCOME_OK, Stdout: "1\n", Delivery: uint32(m.Attempt)},
	}}}
}

// results counts the results of each call.
func (w *world) results() map[string]int {
	counts := map[string]int{}
	for _, m := range w.read("code-results") {
		counts[m.(*sluicev1.CodeResult).GetCallId()]++
	}
	return counts
}

func (w *world) letters() []*sluicev1.DeadLetter {
	var ls []*sluicev1.DeadLetter
	for _, m := range w.read("dead-letters") {
		ls = append(ls, m.(*sluicev1.DeadLetter))
	}
	return ls
}

func (w *world) trajectories() []*sluicev1.Trajectory {
	var ts []*sluicev1.Trajectory
	for _, m := range w.read("trajectories") {
		ts = append(ts, m.(*sluicev1.Trajectory))
	}
	return ts
}

// poison is a record of a message with its value broken; headers tell what it was.
func poison(t testing.TB, topic string, m proto.Message) *kgo.Record {
	t.Helper()
	rec, err := codec.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	r := &kgo.Record{Topic: topic, Key: rec.Key, Value: []byte("\xff\xffnot a message")}
	for _, h := range rec.Headers {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
	}
	return r
}

// callID is the id of a message's call.
func callID(m Message) string { return m.Body.(*sluicev1.CodeCall).GetCallId() }

// partitions gives a topic another number of partitions before anybody reads it.
func (w *world) partitions(topic string, n int32) {
	w.t.Helper()
	t := w.top.Topics[topic]
	more := int(n - t.Partitions)
	t.Partitions = n
	topics := maps.Clone(w.top.Topics)
	topics[topic] = t
	w.top.Topics = topics
	if more <= 0 {
		return
	}
	cl, err := NewClient(w.cluster(), "test", "admin")
	if err != nil {
		w.t.Fatal(err)
	}
	defer cl.Close()
	if _, err := kadm.NewClient(cl).CreatePartitions(w.t.Context(), more, testNamespace+topic); err != nil {
		w.t.Fatal(err)
	}
}
