package up

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/sluice-rl/sluice/topology"
	"github.com/sluice-rl/sluice/topology/apply"
	"github.com/sluice-rl/sluice/topology/embedded/simpolicy/gsm8k"
	"github.com/sluice-rl/sluice/topology/sluice/supervise"
	"github.com/sluice-rl/sluice/topology/sluice/terminal"
)

// system is what one `sluice up` has running.
type system struct {
	o        Options
	dir      *directory
	run      run
	topology topology.Topology
	sup      *supervise.Supervisor
	at       places
	screen   *screen
	// pagesAt is where the pages are served, host:port; empty: nowhere.
	pagesAt string
}

// startServices starts or finds what the stages use, and makes the topics.
func (s *system) startServices(ctx context.Context) error {
	// Before anything else runs: the supervisor collects ended processes that are
	// not its own, and this one is not.
	if err := s.prepareProblems(ctx); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.startClickHouse(ctx) })
	g.Go(func() error { return s.startSandboxd(ctx) })
	g.Go(func() error {
		if err := s.startBroker(ctx); err != nil {
			return err
		}
		if err := s.applyTopology(ctx); err != nil {
			return err
		}
		return s.startSimpolicy(ctx)
	})
	if err := g.Wait(); err != nil {
		return err
	}
	for name, address := range map[string]string{
		broker: s.at.brokers[0], clickhouse: s.at.clickhouseAddr, clickhouse + " http": s.at.clickhouseHTTP,
		simpolicy: strings.TrimPrefix(s.at.inferenceURL, "http://"),
	} {
		if s.sup.Child(strings.TrimSuffix(name, " http")) != nil {
			s.remember(name, address)
		}
	}
	return s.dir.save(s.run)
}

// start starts a process and waits until it can serve.
func (s *system) start(ctx context.Context, spec supervise.Spec, err error) (map[string]string, error) {
	if err != nil {
		return nil, err
	}
	child := s.sup.Start(spec)
	ctx, cancel := context.WithTimeoutCause(ctx, s.o.ReadyWithin, fmt.Errorf("not within %v (--ready-within)", s.o.ReadyWithin))
	defer cancel()
	return child.WaitReady(ctx)
}

func (s *system) startBroker(ctx context.Context) error {
	if len(s.o.Brokers) > 0 {
		s.at.brokers = s.o.Brokers
		return nil
	}
	spec, err := s.brokerSpec()
	addresses, err := s.start(ctx, spec, err)
	if err != nil {
		return err
	}
	s.at.brokers = []string{addresses["kafka"]}
	return nil
}

func (s *system) applyTopology(ctx context.Context) error {
	cl, err := kgo.NewClient(append(s.connect(), kgo.ClientID("sluice-up"))...)
	if err != nil {
		return fmt.Errorf("%w: --brokers: %w", ErrUsage, err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeoutCause(ctx, s.o.ReadyWithin, fmt.Errorf("no answer from %v within %v (--ready-within)", s.at.brokers, s.o.ReadyWithin))
	defer cancel()
	if _, err := apply.Apply(ctx, cl, s.topology, apply.Options{Namespace: s.o.Namespace}); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("make the topics: %w", err)
	}
	return nil
}

func (s *system) startClickHouse(ctx context.Context) error {
	if s.o.ClickHouse != "" {
		s.at.clickhouseAddr = s.o.ClickHouse
		s.at.writer = account{s.o.CHUser, s.o.CHPassword}
		s.at.reader, s.at.pages = s.at.writer, s.at.writer
		return nil
	}
	spec, err := s.clickhouseSpec()
	addresses, err := s.start(ctx, spec, err)
	if err != nil {
		return err
	}
	s.at.clickhouseAddr, s.at.clickhouseHTTP = addresses["tcp"], addresses["http"]
	s.at.writer = account{addresses["writer_user"], addresses["writer_password_file"]}
	s.at.reader = account{addresses["reader_user"], addresses["reader_password_file"]}
	s.at.pages = account{addresses["pages_user"], addresses["pages_password_file"]}
	return nil
}

func (s *system) startSandboxd(ctx context.Context) error {
	if s.o.SandboxSocket != "" {
		path, err := filepath.Abs(s.o.SandboxSocket)
		if err != nil {
			return fmt.Errorf("--sandboxd-socket: %w", err)
		}
		s.at.sandboxSocket = path
		return nil
	}
	spec, err := s.sandboxdSpec()
	if _, err := s.start(ctx, spec, err); err != nil {
		return err
	}
	s.at.sandboxSocket = s.socketPath()
	return nil
}

func (s *system) startSimpolicy(ctx context.Context) error {
	if s.o.InferenceURL != "" {
		s.at.inferenceURL = s.o.InferenceURL
		return nil
	}
	spec, err := s.simpolicySpec()
	addresses, err := s.start(ctx, spec, err)
	if err != nil {
		return err
	}
	s.at.inferenceURL = "http://" + addresses["http"]
	return nil
}

// startStages starts all stages at once and the feeder when they can serve.
func (s *system) startStages(ctx context.Context) error {
	specs, err := s.stageSpecs()
	if err != nil {
		return err
	}
	if s.pagesAt != "" {
		spec, err := s.pagesSpec()
		if err != nil {
			return err
		}
		s.sup.Start(spec)
	}
	g, ready := errgroup.WithContext(ctx)
	for _, spec := range specs {
		g.Go(func() error {
			_, err := s.start(ready, spec, nil)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	spec, err := s.feederSpec()
	if err != nil {
		return err
	}
	s.sup.Start(spec)
	return nil
}

// prepareProblems makes the problem file that the feeder reads, with the feeder's own
// command; once per run, so that a run that goes on sees the same file.
func (s *system) prepareProblems(ctx context.Context) error {
	if _, err := os.Stat(s.dir.file("problems", "train.jsonl")); err == nil {
		return nil
	}
	input := s.o.Problems
	if input == "" {
		input = s.dir.file("problems", "gsm8k-sample.jsonl")
		if err := os.WriteFile(input, gsm8k.Sample, 0o644); err != nil {
			return fmt.Errorf("problems: %w", err)
		}
		if err := os.WriteFile(s.dir.file("problems", "LICENSE"), []byte(gsm8k.License), 0o644); err != nil {
			return fmt.Errorf("problems: %w", err)
		}
	}
	binary, err := Beside(feeder)
	if err != nil {
		return err
	}
	// Into a folder beside, renamed when whole: an interruption leaves no half file.
	into := s.dir.file("problems", "unfinished")
	defer os.RemoveAll(into)
	cmd := exec.CommandContext(ctx, binary, "prepare", "--input", input, "--out", into, "--dev", "0")
	cmd.Env = environ(os.Environ(), false)
	cmd.WaitDelay = 2 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: prepare the problems of %s: %w\n%s", ErrUsage, input, err, terminal.EscapeLines(strings.TrimSpace(string(out))))
	}
	entries, err := os.ReadDir(into)
	if err != nil {
		return fmt.Errorf("problems: %w", err)
	}
	for _, e := range entries {
		if e.Name() == "train.jsonl" {
			continue
		}
		if err := os.Rename(filepath.Join(into, e.Name()), s.dir.file("problems", e.Name())); err != nil {
			return fmt.Errorf("problems: %w", err)
		}
	}
	if err := os.Rename(filepath.Join(into, "train.jsonl"), s.dir.file("problems", "train.jsonl")); err != nil {
		return fmt.Errorf("problems: %w", err)
	}
	return nil
}
