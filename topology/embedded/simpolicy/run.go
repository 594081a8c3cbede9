package simpolicy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"

	"github.com/sluice-rl/sluice/topology"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/gsm8k"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/policy"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/server"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/state"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/tokenizer"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/trainer"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/worked"
	"github.com/sluice-rl/sluice/topology/process/readyfile"
)

// drain is how long requests in flight may take to end once a stop is asked for.
const drain = 5 * time.Second

// run is the program's life: it returns nil once it was asked to stop and has.
func run(ctx context.Context, c *config, log *slog.Logger) error {
	tok, err := tokenizer.New()
	if err != nil {
		return err
	}
	pol, err := loadPolicy(c, tok, log)
	if err != nil {
		return err
	}
	st, store, err := loadState(c, tok, log)
	if err != nil {
		return err
	}
	if store != nil {
		defer store.Close()
	}
	var served atomic.Pointer[server.Snapshot]
	served.Store(&server.Snapshot{Version: st.PolicyVersion, Parameters: st.Parameters})
	reg := prometheus.NewRegistry()
	inference, err := server.New(c.server(), tok, pol, func() server.Snapshot { return *served.Load() }, log, reg)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", c.httpAddr)
	if err != nil {
		return fmt.Errorf("--http-addr: %w", err)
	}
	var h health
	var train *trainer.Trainer
	if len(c.brokers) > 0 {
		h.kafka(errors.New("not connected yet"))
		if train, err = newTrainer(c, st, listener.Addr(), trainer.Deps{
			Policy: pol, Store: store, Hand: func(s server.Snapshot) { served.Store(&s) },
			Ready: h.kafka, Log: log, Metrics: reg,
		}); err != nil {
			return errors.Join(err, listener.Close())
		}
	}
	// The listener takes connections from here on, so it may be said already.
	if c.readyFile != "" {
		remove, err := readyfile.Write(c.readyFile, map[string]string{"http": listener.Addr().String()})
		if err != nil {
			return errors.Join(fmt.Errorf("--ready-file: %w", err), listener.Close())
		}
		defer func() {
			if err := remove(); err != nil {
				log.Warn("the ready file stays", "error", err)
			}
		}()
	}
	log.Info("simpolicy, a stand-in for a GPU, is serving", "http", listener.Addr().String(), "model", c.model, "policy_version", st.PolicyVersion, "trainer", train != nil)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return serve(ctx, &http.Server{Handler: routes(inference, &h, reg), ReadHeaderTimeout: 10 * time.Second}, listener)
	})
	if train != nil {
		group.Go(func() error { return train.Run(ctx) })
	}
	return group.Wait()
}

func loadPolicy(c *config, tok *tokenizer.Tokenizer, log *slog.Logger) (*policy.Policy, error) {
	problems := gsm8k.Sample
	if c.problems != "" {
		b, err := os.ReadFile(c.problems)
		if err != nil {
			return nil, fmt.Errorf("%w: --problems: %w", errUsage, err)
		}
		problems = b
	}
	library, err := worked.Load(problems)
	if err != nil {
		return nil, fmt.Errorf("%w: --problems: %w", errUsage, err)
	}
	log.Info("worked solutions", "usable", library.Len(), "refused", len(library.Refused))
	for i, r := range library.Refused {
		if i == 5 {
			log.Warn("more rows without a usable solution, not listed", "rows", len(library.Refused)-i)
			break
		}
		log.Warn("row left out, it has no usable worked solution: its question, if fed, is answered in the head", "line", r.Line, "reason", r.Reason)
	}
	return policy.New(tok, library)
}

// loadState opens the run's state; without a state directory there is none, and the
// policy starts from its initial parameters.
func loadState(c *config, tok *tokenizer.Tokenizer, log *slog.Logger) (state.State, *state.Store, error) {
	if c.stateDir == "" {
		return state.New(), nil, nil
	}
	store, err := state.Open(c.stateDir, c.runID, tok.Fingerprint())
	if err != nil {
		return state.State{}, nil, err
	}
	st, found, err := store.Load()
	if err != nil {
		return state.State{}, nil, errors.Join(err, store.Close())
	}
	log.Info("state", "dir", c.stateDir, "run", c.runID, "resumed", found, "policy_version", st.PolicyVersion)
	return st, store, nil
}

// stayWhereYouAre as --inference-url: updates name no address, so that samplers keep the
// one that they were started with. Recorded updates then cannot send a sampler to where
// this server listened before it was started again.
const stayWhereYouAre = "-"

func newTrainer(c *config, st state.State, addr net.Addr, d trainer.Deps) (*trainer.Trainer, error) {
	top, err := topology.Default()
	if err != nil {
		return nil, err
	}
	url := c.inference
	switch url {
	case "":
		url = "http://" + addr.String()
	case stayWhereYouAre:
		url = ""
	}
	return trainer.New(trainer.Config{
		Brokers: c.brokers, Namespace: c.namespace, RunID: c.runID, InferenceURL: url, Model: c.model,
		MaxMessageBytes: top.MaxMessageBytes, Freeze: c.freeze, PPO: c.train,
	}, st, d)
}

func routes(inference *server.Server, h *health, reg *prometheus.Registry) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", h.readyz)
	mux.Handle("/", inference.Handler())
	return mux
}

func serve(ctx context.Context, s *http.Server, l net.Listener) error {
	stopped := make(chan error, 1)
	go func() { stopped <- s.Serve(l) }()
	select {
	case err := <-stopped:
		return fmt.Errorf("http server: %w", err)
	case <-ctx.Done():
	}
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	if err := s.Shutdown(limit); err != nil {
		return s.Close()
	}
	return nil
}
