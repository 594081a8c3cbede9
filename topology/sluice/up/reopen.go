package up

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sluice-rl/sluice/topology/process/lock"
	"github.com/sluice-rl/sluice/topology/sluice/supervise"
)

// Recorded is where the records and rows of a run's directory are served.
type Recorded struct {
	Brokers      []string
	Namespace    string
	ClickHouse   string // HTTP
	Database     string
	User         string
	PasswordFile string
	sup          *supervise.Supervisor
	dir          *directory
}

// Reopen serves what an ended run left in its directory, by the embedded broker and
// ClickHouse, until Close. log is told what happens to the two.
func Reopen(ctx context.Context, path, library string, logFlags []string, log io.Writer) (*Recorded, error) {
	dir, err := openDirectory(path)
	if errors.Is(err, lock.ErrHeld) {
		return nil, fmt.Errorf("%w; while it runs it serves its pages itself, at the address in its first line", err)
	}
	if err != nil {
		return nil, err
	}
	r := &Recorded{dir: dir}
	if err := r.start(ctx, library, logFlags, log); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

func (r *Recorded) start(ctx context.Context, library string, logFlags []string, log io.Writer) error {
	was, ok, err := r.dir.load()
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("%w: --dir %s holds no run", ErrUnusable, r.dir.path)
	}
	s := &system{o: Options{Library: library, LogFlags: logFlags, ReadyWithin: 2 * time.Minute, CHDatabase: was.Database}, dir: r.dir, run: was}
	if s.o.CHDatabase == "" {
		s.o.CHDatabase = "sluice" // of an older build, which had no other way to name it
	}
	for folder, name := range map[string]string{"broker": broker, "clickhouse": clickhouse} {
		if !s.dir.holds("data", folder) {
			return fmt.Errorf("%w: %s holds no data of %s: its run used one elsewhere; name that with --brokers and --clickhouse-addr", ErrUnusable, r.dir.path, name)
		}
	}
	if err := r.dir.makeFolders(); err != nil {
		return err
	}
	s.sup, err = supervise.New(supervise.Config{LogDir: r.dir.file("logs"), Tell: func(text string) { fmt.Fprintln(log, text) }})
	if err != nil {
		return err
	}
	r.sup = s.sup
	g, starting := errgroup.WithContext(ctx)
	g.Go(func() error { return s.startBroker(starting) })
	g.Go(func() error { return s.startClickHouse(starting) })
	if err := g.Wait(); err != nil {
		return err
	}
	r.Brokers, r.Namespace, r.ClickHouse, r.Database = s.at.brokers, was.Namespace, s.at.clickhouseHTTP, s.o.CHDatabase
	r.User, r.PasswordFile = s.at.pages.user, s.at.pages.passwordFile
	return nil
}

// Failed gives the error of a server that cannot be kept running.
func (r *Recorded) Failed() <-chan error { return r.sup.Failed() }

// Close stops the servers and lets others have the directory.
func (r *Recorded) Close() {
	if r.sup != nil {
		r.sup.StopAll([]string{clickhouse}, []string{broker})
		r.sup.Close()
	}
	r.dir.Close()
}
