package simpolicy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"

	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/gsm8k"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/policy"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/server"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/state"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/tokenizer"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/trainer"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/worked"
	"github.com/sluice-rl/sluice/topology/process"
)

// run is the program's life: it returns nil once it was asked to stop and has.
func run(ctx context.Context, c *config, l *process.Life) error {
	tok, err := tokenizer.New()
	if err != nil {
		return err
	}
	pol, err := loadPolicy(c, tok, l.Log)
	if err != nil {
		return err
	}
	st, store, err := loadState(c, tok, l.Log)
	if err != nil {
		return err
	}
	if store != nil {
		defer store.Close()
	}
	var served atomic.Pointer[server.Snapshot]
	served.Store(&server.Snapshot{Version: st.PolicyVersion, Parameters: st.Parameters})
	inference, err := server.New(c.server(), tok, pol, func() server.Snapshot { return *served.Load() }, l.Log, l.Metrics)
	if err != nil {
		return err
	}
	l.HTTP.Handle("/", inference.Handler())
	l.Address("http", l.Addr())
	l.Log.Info("simpolicy, a stand-in for a GPU, is serving", "http", l.Addr(), "model", c.model, "policy_version", st.PolicyVersion, "trainer", len(c.Brokers) > 0)
	if len(c.Brokers) == 0 {
		l.Health.Begun()
		<-ctx.Done()
		return nil
	}
	ready := func(err error) { l.Health.Ready("kafka", err) }
	ready(errors.New("not connected yet"))
	train, err := newTrainer(c, st, l.Addr(), trainer.Deps{
		Policy: pol, Store: store, Hand: func(s server.Snapshot) { served.Store(&s) },
		Ready: ready, Log: l.Log, Metrics: l.Metrics,
	})
	if err != nil {
		return err
	}
	l.Health.Begun()
	return train.Run(ctx)
}

func loadPolicy(c *config, tok *tokenizer.Tokenizer, log *slog.Logger) (*policy.Policy, error) {
	problems := gsm8k.Sample
	if c.problems != "" {
		b, err := os.ReadFile(c.problems)
		if err != nil {
			return nil, process.Usage(fmt.Errorf("--problems: %w", err))
		}
		problems = b
	}
	library, err := worked.Load(problems)
	if err != nil {
		return nil, process.Usage(fmt.Errorf("--problems: %w", err))
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

func newTrainer(c *config, st state.State, addr string, d trainer.Deps) (*trainer.Trainer, error) {
	top, err := c.Load()
	if err != nil {
		return nil, err
	}
	url := c.inference
	switch url {
	case "":
		url = "http://" + addr
	case stayWhereYouAre:
		url = ""
	}
	return trainer.New(trainer.Config{
		Connect: c.Options(), Namespace: c.Namespace, RunID: c.runID, InferenceURL: url, Model: c.model,
		MaxMessageBytes: top.MaxMessageBytes, Freeze: c.freeze, PPO: c.train,
	}, st, d)
}
