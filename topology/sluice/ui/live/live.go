// Package live says how a system is now, from Kafka: what waits before each stage and how
// fast it goes, which processes are at work and what they wait for, how far SQL is behind,
// and what a single record holds.
//
// It reads the offsets of groups and topics, the topic stage-status and single records,
// all without a group, so looking changes nothing. Looks are shared: however many pages
// are open, the brokers are asked once in two seconds, and not at all where none is.
package live

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/sluice-rl/sluice/topology"
	"github.com/sluice-rl/sluice/topology/sluice/depth"
	"github.com/sluice-rl/sluice/topology/sluice/presence"
)

// Config says which system.
type Config struct {
	// Connect are the options of every client.
	Connect   []kgo.Opt
	Namespace string
	Topology  topology.Topology
}

// fresh is how old a look may be that is shown again.
const fresh = 2 * time.Second

// patience bounds a look.
const patience = 8 * time.Second

// Now is one look. Topics are without the namespace.
type Now struct {
	At   time.Time        `json:"at"`
	Work []depth.Work     `json:"work"`
	Ends map[string]int64 `json:"ends"`
	// Processes are stage-status records by the names of the contracts, with live and
	// silent_ms added.
	Processes []Process `json:"processes"`
	// Flow says which stage reads and writes which topics.
	Flow map[string]Stage `json:"flow"`
	// BehindSeconds is how old the oldest record is that metrics-writer has not written
	// yet; 0 where it has written all.
	BehindSeconds float64 `json:"behind_seconds"`
}

// Process is one process of a stage.
type Process struct {
	Status   json.RawMessage `json:"status"`
	Live     bool            `json:"live"`
	SilentMS int64           `json:"silent_ms"`
}

// Stage of the topology.
type Stage struct {
	Reads  []string `json:"reads"`
	Writes []string `json:"writes"`
}

// Watch looks when it is asked.
type Watch struct {
	cfg   Config
	meter *depth.Meter
	cl    *kgo.Client

	mu        sync.Mutex
	processes *presence.Reader
	last      Now
	before    depth.Snapshot
	err       error
	tried     time.Time
}

// New connects lazily; unreachable brokers show in Look.
func New(cfg Config) (*Watch, error) {
	meter, err := depth.NewMeter(depth.Config{Connect: cfg.Connect, Namespace: cfg.Namespace, Topology: cfg.Topology})
	if err != nil {
		return nil, err
	}
	cl, err := kgo.NewClient(append(append([]kgo.Opt{}, cfg.Connect...), kgo.ClientID("sluice-ui"))...)
	if err != nil {
		meter.Close()
		return nil, fmt.Errorf("kafka client: %w", err)
	}
	return &Watch{cfg: cfg, meter: meter, cl: cl}, nil
}

// Close ends the connections.
func (w *Watch) Close() {
	w.meter.Close()
	w.cl.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.processes != nil {
		w.processes.Close()
	}
}

// Look says how the system is now, or was within the last two seconds.
func (w *Watch) Look(ctx context.Context) (Now, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.tried) < fresh {
		return w.last, w.err
	}
	// One who goes away does not take the look from those who wait for it too.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	w.last, w.err = w.look(ctx)
	w.tried = time.Now()
	return w.last, w.err
}

func (w *Watch) look(ctx context.Context) (Now, error) {
	snapshot, err := w.meter.Measure(ctx)
	if err != nil {
		return Now{}, fmt.Errorf("measure depth: %w", err)
	}
	// A rate over a long pause would be of no moment.
	if age := snapshot.At.Sub(w.before.At); age < 30*time.Second {
		snapshot.Rates(w.before)
	}
	w.before = snapshot
	now := Now{At: snapshot.At, Work: snapshot.Work, Ends: snapshot.Ends, Flow: map[string]Stage{}, Processes: []Process{}}
	for name, s := range w.cfg.Topology.Stages {
		now.Flow[name] = Stage{s.Reads, s.Writes}
	}
	for _, work := range snapshot.Work {
		if work.Stage == "metrics-writer" && !work.Oldest.IsZero() {
			now.BehindSeconds = max(now.BehindSeconds, snapshot.At.Sub(work.Oldest).Seconds())
		}
	}
	if w.processes == nil {
		if w.processes, err = presence.NewReader(w.cfg.Connect, topology.Name(w.cfg.Namespace, topology.StatusTopic)); err != nil {
			return now, err
		}
	}
	processes, err := w.processes.Read(ctx, now.At)
	if err != nil {
		// It may stand between two records: the next look begins anew.
		w.processes.Close()
		w.processes = nil
		return now, err
	}
	for _, p := range processes {
		status, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(p.StageStatus)
		if err != nil {
			return now, err
		}
		now.Processes = append(now.Processes, Process{status, p.Live(now.At), now.At.Sub(p.Heard).Milliseconds()})
	}
	return now, nil
}
