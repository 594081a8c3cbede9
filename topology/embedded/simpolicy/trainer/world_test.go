package trainer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
	"github.com/sluice-rl/sluice/topology"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/chat"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/gsm8k"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/policy"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/ppo"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/server"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/state"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/tokenizer"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/worked"
)

const (
	namespace = "t."
	run       = "run-1"
	url       = "http://127.0.0.1:8000"
)

var errCrash = errors.New("crash")

// world is a broker in virtual time and what a trainer needs.
type world struct {
	t      *testing.T
	net    *kfake.VirtualNetwork
	top    topology.Topology
	opts   []kfake.Opt
	broker *kfake.Cluster
	dir    string
	tok    *tokenizer.Tokenizer
	pol    *policy.Policy
	lib    *worked.Library
	out    *kgo.Client
}

func inWorld(t *testing.T, f func(w *world)) {
	t.Helper()
	brokerDir, dir := t.TempDir(), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, net: &kfake.VirtualNetwork{}, dir: dir}
		w.tok = must(tokenizer.New())(t)
		w.lib = must(worked.Load(gsm8k.Sample))(t)
		w.pol = must(policy.New(w.tok, w.lib))(t)
		w.top = must(topology.Default())(t)
		w.opts = []kfake.Opt{kfake.NumBrokers(1), kfake.Ports(9092), kfake.ListenFn(w.net.Listen), kfake.DataDir(brokerDir)}
		for _, name := range []string{topicBatches, topicUpdates, topicReports} {
			w.opts = append(w.opts, kfake.SeedTopics(w.top.Topics[name].Partitions, namespace+name))
		}
		w.startBroker()
		w.out = w.client()
		f(w)
		w.out.Close()
		w.broker.Close()
	})
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func (w *world) startBroker() { w.broker = must(kfake.NewCluster(w.opts...))(w.t) }

func (w *world) client(opts ...kgo.Opt) *kgo.Client {
	return must(kgo.NewClient(append(opts, kgo.SeedBrokers("127.0.0.1:9092"), kgo.Dialer(w.net.DialContext))...))(w.t)
}

// write puts messages on ppo-batches.
func (w *world) write(ms ...proto.Message) {
	w.t.Helper()
	for _, m := range ms {
		w.writeRecord(w.encode(m))
	}
}

func (w *world) encode(m proto.Message) *kgo.Record {
	w.t.Helper()
	rec := must(codec.Encode(m))(w.t)
	r := &kgo.Record{Topic: namespace + topicBatches, Key: rec.Key, Value: rec.Value}
	for _, h := range rec.Headers {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
	}
	return r
}

func (w *world) writeRecord(r *kgo.Record) {
	w.t.Helper()
	if err := w.out.ProduceSync(context.Background(), r).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
}

// read returns all that stands in a topic now.
func (w *world) read(topic string) []proto.Message {
	w.t.Helper()
	c := w.client(kgo.ConsumeTopics(namespace+topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer c.Close()
	var all []proto.Message
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		fetches := c.PollFetches(ctx)
		cancel()
		if fetches.NumRecords() == 0 {
			return all
		}
		for it := fetches.RecordIter(); !it.Done(); {
			all = append(all, must(codec.Decode(fromKafka(it.Next())))(w.t))
		}
	}
}

func (w *world) updates() []*sluicev1.PolicyUpdate {
	w.t.Helper()
	var all []*sluicev1.PolicyUpdate
	for _, m := range w.read(topicUpdates) {
		all = append(all, m.(*sluicev1.PolicyUpdate))
	}
	return all
}

func (w *world) reports() []*sluicev1.TrainerReport {
	w.t.Helper()
	var all []*sluicev1.TrainerReport
	for _, m := range w.read(topicReports) {
		all = append(all, m.(*sluicev1.TrainerReport))
	}
	return all
}

// process is one life of a trainer.
type process struct {
	w      *world
	t      *Trainer
	store  *state.Store
	cancel context.CancelFunc
	done   chan error

	mu     sync.Mutex
	handed []server.Snapshot
	ready  error
}

func (w *world) start(change func(*Config)) *process {
	w.t.Helper()
	store := must(state.Open(w.dir, run, w.tok.Fingerprint()))(w.t)
	st, _, err := store.Load()
	if err != nil {
		w.t.Fatal(err)
	}
	p := &process{w: w, store: store, done: make(chan error, 1), ready: errors.New("never asked")}
	cfg := Config{
		Connect: []kgo.Opt{kgo.SeedBrokers("127.0.0.1:9092"), kgo.Dialer(w.net.DialContext)}, Namespace: namespace, RunID: run, InferenceURL: url, Model: "simpolicy",
		MaxMessageBytes: w.top.MaxMessageBytes, PPO: ppo.Defaults(),
	}
	if change != nil {
		change(&cfg)
	}
	p.t = must(New(cfg, st, Deps{
		Policy: w.pol, Store: store, Hand: p.hand, Ready: p.setReady,
		Log:     slog.New(slog.NewTextHandler(w.t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
		Metrics: prometheus.NewRegistry(),
	}))(w.t)
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	go func() { p.done <- p.t.Run(ctx) }()
	return p
}

func (p *process) hand(s server.Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handed = append(p.handed, s)
}

func (p *process) setReady(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ready = err
}

func (p *process) isReady() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ready
}

func (p *process) handedOver() []server.Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.handed)
}

// stop ends the process as a signal does.
func (p *process) stop() {
	p.w.t.Helper()
	p.cancel()
	p.end(nil)
}

// end waits for Run to return, and wants this error.
func (p *process) end(want error) {
	p.w.t.Helper()
	if err := <-p.done; !errors.Is(err, want) {
		p.w.t.Fatalf("Run ended with %v, want %v", err, want)
	}
	p.cancel()
	if err := p.store.Close(); err != nil {
		p.w.t.Fatal(err)
	}
}

// saved is the state on disk.
func (w *world) saved() state.State {
	w.t.Helper()
	store := must(state.Open(w.dir, run, w.tok.Fingerprint()))(w.t)
	defer store.Close()
	st, found, err := store.Load()
	if err != nil || !found {
		w.t.Fatalf("state: found %t, error %v", found, err)
	}
	return st
}

// step makes a StepBatch of real samples in two micro-batches. It is made from the
// initial parameters: the trainer must cope with stale samples too.
func (w *world) step(n uint64) (*sluicev1.StepBatch, []*sluicev1.MicroBatch) {
	w.t.Helper()
	sb := &sluicev1.StepBatch{RunId: run, Step: n, MicroBatches: 2, N: 8, ClipLow: 0.8, ClipHigh: 1.28, TokenReduction: sluicev1.TokenReduction_TOKEN_REDUCTION_MEAN}
	var micro []*sluicev1.MicroBatch
	for i := range uint32(2) {
		m := &sluicev1.MicroBatch{RunId: run, Step: n, Index: i, ClipLow: 0.8, ClipHigh: 1.28, TokenReduction: sb.TokenReduction}
		for k := range uint64(4) {
			m.Data = append(m.Data, w.datum(n*100+uint64(i)*10+k, float32(1-2*int(k%2))/2))
		}
		micro = append(micro, m)
	}
	return sb, micro
}

func (w *world) datum(seed uint64, advantage float32) *sluicev1.Datum {
	w.t.Helper()
	q := w.lib.All()[seed%uint64(w.lib.Len())].Question
	text := "<|im_start|>system\n<tools>\n</tools><|im_end|>\n<|im_start|>user\n" + q + "<|im_end|>\n" + chat.GenerationPrompt(false)
	ids := w.tok.Encode(text)
	prompt := len(ids)
	g := must(w.pol.Sample(policy.Initial(), policy.Request{Prompt: ids, Seed: seed, MaxTokens: 512, Sampling: policy.Plain}))(w.t)
	d := &sluicev1.Datum{SampleIndex: uint32(seed % 8)}
	for _, tok := range g.Tokens {
		ids = append(ids, tok.ID)
	}
	n := len(ids) - 1
	d.InputTokens, d.TargetTokens = tokens.IDs(ids[:n]...), tokens.IDs(ids[1:]...)
	logprobs, advantages := make([]float32, n), make([]float32, n)
	d.LossMask = make([]byte, n)
	for i, tok := range g.Tokens {
		at := prompt - 1 + i
		logprobs[at], advantages[at], d.LossMask[at] = float32(tok.Logprob), advantage, 1
	}
	d.BehaviourLogprobs, d.Advantages = tokens.Floats(logprobs...), tokens.Floats(advantages...)
	return d
}

func (w *world) writeStep(n uint64) {
	w.t.Helper()
	sb, micro := w.step(n)
	w.write(sb)
	for _, m := range micro {
		w.write(m)
	}
}

// said is "step:version" of each update.
func said(us []*sluicev1.PolicyUpdate) []string {
	var all []string
	for _, u := range us {
		all = append(all, fmt.Sprintf("%d:%d", u.GetStep(), u.GetPolicyVersion()))
	}
	return all
}

// settle lets everything happen that can happen soon.
func settle() {
	time.Sleep(10 * time.Second)
	synctest.Wait()
}
