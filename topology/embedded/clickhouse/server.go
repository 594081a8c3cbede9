package clickhouse

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sluice-rl/sluice/topology/process"
)

var (
	// ErrUnusable: the library cannot be loaded or the engine cannot be run here.
	ErrUnusable = errors.New("engine unusable")
	// ErrPortInUse: another process listens on a port that was asked for.
	ErrPortInUse = errors.New("port in use")
	// ErrEngineDied: the engine process ended without being asked to.
	ErrEngineDied = errors.New("the engine ended unasked")
)

// Config says what to serve and where. DataDir is required.
type Config struct {
	DataDir string
	Library string
	// HTTPPort and TCPPort on 127.0.0.1; 0 takes a free one.
	HTTPPort, TCPPort int
	// User to run the engine as where the process is root.
	User string
	// PagesDatabase is the database that PagesUser may read.
	PagesDatabase string
	// StartTimeout bounds the time from start to the first answer.
	StartTimeout time.Duration
}

var databaseForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,60}$`)

// Validate refuses what cannot be served.
func (c Config) Validate() error {
	if c.DataDir == "" {
		return errors.New("--data-dir is missing: name a directory for the data")
	}
	for _, p := range []struct {
		flag string
		port int
	}{{"--http-port", c.HTTPPort}, {"--tcp-port", c.TCPPort}} {
		if p.port < 0 || p.port > 65535 {
			return fmt.Errorf("%s is %d, want 0 to 65535", p.flag, p.port)
		}
	}
	if c.HTTPPort != 0 && c.HTTPPort == c.TCPPort {
		return fmt.Errorf("--http-port and --tcp-port are both %d", c.HTTPPort)
	}
	if !databaseForm.MatchString(c.PagesDatabase) {
		return fmt.Errorf("--pages-database %q: want a letter, then letters, digits or _", c.PagesDatabase)
	}
	if c.StartTimeout <= 0 {
		return fmt.Errorf("--start-timeout is %v, want above 0", c.StartTimeout)
	}
	return nil
}

// Server is a running engine.
type Server struct {
	cfg  Config
	dir  *directory
	http string
	tcp  string
	log  *slog.Logger

	cmd  *exec.Cmd
	pipe io.Closer
	bind string
	// done closes when the engine process has ended; err then says why.
	done chan struct{}
	err  error
	stop sync.Once
	// stopping is closed by Stop, so that an end is known to be asked for.
	stopping chan struct{}
}

// Start starts the engine and returns when it answers on both protocols.
func Start(ctx context.Context, cfg Config, log *slog.Logger) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	dir, err := claim(cfg.DataDir)
	if err != nil {
		return nil, err
	}
	// Free ports are found by asking for them and letting go, so that another process
	// may take one meanwhile: then others are tried.
	for attempt := 1; ; attempt++ {
		s, err := start(ctx, cfg, dir, log)
		if err == nil {
			return s, nil
		}
		ownChoice := cfg.HTTPPort == 0 || cfg.TCPPort == 0
		if !errors.Is(err, ErrPortInUse) || !ownChoice || attempt == 5 {
			dir.Close()
			return nil, err
		}
	}
}

func start(ctx context.Context, cfg Config, dir *directory, log *slog.Logger) (*Server, error) {
	order := engineOrder{
		Dir: dir.path, Library: cfg.Library, UID: -1, GID: -1,
		WroteEngine: dir.marker.Engine, StopPassword: rand.Text(), Parent: os.Getpid(),
	}
	var err error
	if order.Library, err = filepath.Abs(cfg.Library); err != nil {
		return nil, err
	}
	if order.HTTP, err = port("--http-port", cfg.HTTPPort); err != nil {
		return nil, err
	}
	if order.TCP, err = port("--tcp-port", cfg.TCPPort); err != nil {
		return nil, err
	}
	uid, gid := os.Getuid(), os.Getgid()
	if uid == 0 {
		if uid, gid, err = lookup(cfg.User); err != nil {
			return nil, err
		}
		order.UID, order.GID = uid, gid
	}
	if err := dir.prepare(uid, gid, order.StopPassword, cfg.PagesDatabase); err != nil {
		return nil, err
	}
	cfg.HTTPPort, cfg.TCPPort = order.HTTP, order.TCP
	s := &Server{
		cfg: cfg, dir: dir, log: log, done: make(chan struct{}), stopping: make(chan struct{}),
		http: "127.0.0.1:" + strconv.Itoa(order.HTTP), tcp: "127.0.0.1:" + strconv.Itoa(order.TCP),
	}
	if order.UID >= 0 && !reachable(dir.path) {
		if s.bind, err = os.MkdirTemp("", "sluice-clickhouse-"); err != nil {
			return nil, err
		}
		order.Bind = s.bind
	}
	version, err := s.launch(order)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.StartTimeout)
	defer cancel()
	if err := s.awaitReady(ctx, control{port: order.HTTP, password: order.StopPassword}); err != nil {
		s.kill()
		return nil, err
	}
	dir.marker.Engine = <-version
	if err := dir.writeMarker(); err != nil {
		s.kill()
		return nil, err
	}
	log.Info("serving", "http", s.http, "tcp", s.tcp, "data_dir", dir.path, "engine", dir.marker.Engine, "engine_pid", s.cmd.Process.Pid)
	return s, nil
}

// port checks that a wished port is free, or finds a free one.
func port(flag string, wish int) (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(wish))
	if errors.Is(err, syscall.EADDRINUSE) {
		return 0, fmt.Errorf("%w: %s %d: another process listens on 127.0.0.1:%d: stop it, choose another port, or 0 for a free one", ErrPortInUse, flag, wish, wish)
	}
	if err != nil {
		return 0, fmt.Errorf("%s %d: %w", flag, wish, err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func lookup(name string) (uid, gid int, err error) {
	u, err := user.Lookup(name)
	if err != nil {
		return 0, 0, fmt.Errorf("%w: --user %s: %w", ErrUnusable, name, err)
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	if err := errors.Join(err1, err2); err != nil {
		return 0, 0, fmt.Errorf("%w: --user %s: %w", ErrUnusable, name, err)
	}
	if uid == 0 {
		return 0, 0, fmt.Errorf("%w: --user %s is root: the engine can be asked to read any file that it may read", ErrUnusable, name)
	}
	return uid, gid, nil
}

// reachable says whether everybody may enter all directories above dir.
func reachable(dir string) bool {
	for d := filepath.Dir(dir); ; d = filepath.Dir(d) {
		info, err := os.Stat(d)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
		if d == filepath.Dir(d) {
			return true
		}
	}
}

// launch starts the engine process. The version comes once it has loaded the library.
func (s *Server) launch(order engineOrder) (<-chan string, error) {
	readOrder, pipe, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	readVersion, writeVersion, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.pipe = pipe
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	words := &lastWords{out: os.Stderr, stopping: s.stopping}
	s.cmd = exec.Command(self, engineCommand)
	s.cmd.ExtraFiles = []*os.File{readOrder, writeVersion}
	// Nothing of ours is the engine's business: its environment is empty.
	s.cmd.Env = []string{"TZ=UTC"}
	s.cmd.Stderr = words
	s.cmd.Stdout = words
	// A group of its own: Ctrl-C at a terminal reaches the parent, which stops it in
	// good order.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if order.Bind != "" {
		s.cmd.SysProcAttr.Unshareflags = syscall.CLONE_NEWNS
	}
	started := make(chan error)
	go func() {
		// The death signal is sent when the thread that started the child ends, so
		// this one stays until the child has ended.
		runtime.LockOSThread()
		err := s.cmd.Start()
		readOrder.Close()
		writeVersion.Close()
		started <- err
		if err != nil {
			return
		}
		s.ended(s.cmd.Wait(), words)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("%w: start the engine process: %w", ErrUnusable, err)
	}
	if err := json.NewEncoder(pipe).Encode(order); err != nil {
		s.kill()
		return nil, fmt.Errorf("%w: %w", ErrEngineDied, err)
	}
	version := make(chan string, 1)
	go func() {
		defer readVersion.Close()
		line, _ := bufio.NewReader(readVersion).ReadString('\n')
		version <- strings.TrimSpace(line)
	}()
	return version, nil
}

// ended records why the engine process ended.
func (s *Server) ended(err error, words *lastWords) {
	defer close(s.done)
	if s.bind != "" {
		_ = os.Remove(s.bind)
	}
	select {
	case <-s.stopping:
		if code := s.cmd.ProcessState.ExitCode(); code != process.ExitOK {
			s.err = fmt.Errorf("%w: no clean stop: %v", process.ErrHardStop, s.cmd.ProcessState)
		}
		return
	default:
	}
	said := words.String()
	switch {
	case strings.Contains(said, "Address already in use"):
		s.err = fmt.Errorf("%w: %s", ErrPortInUse, said)
	case s.cmd.ProcessState.ExitCode() == process.ExitUnusable && strings.Contains(said, ErrNewerData.Error()):
		s.err = fmt.Errorf("%w: %s", ErrNewerData, said)
	case s.cmd.ProcessState.ExitCode() == process.ExitUnusable:
		s.err = fmt.Errorf("%w: %s", ErrUnusable, said)
	default:
		s.err = fmt.Errorf("%w: %w: %s", ErrEngineDied, err, said)
	}
}

func (s *Server) awaitReady(ctx context.Context, c control) error {
	for {
		err := c.serving(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-s.done:
			return s.err
		case <-ctx.Done():
			return fmt.Errorf("%w: no answer in time: %w: last: %w", ErrUnusable, ctx.Err(), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// HTTP and TCP are the addresses, host:port.
func (s *Server) HTTP() string { return s.http }

// TCP is the address of the native protocol.
func (s *Server) TCP() string { return s.tcp }

// WriterPasswordFile and ReaderPasswordFile hold the users' passwords.
func (s *Server) WriterPasswordFile() string { return s.dir.file(writerSecret) }

// ReaderPasswordFile holds the password of ReaderUser.
func (s *Server) ReaderPasswordFile() string { return s.dir.file(readerSecret) }

// PagesPasswordFile holds the password of PagesUser.
func (s *Server) PagesPasswordFile() string { return s.dir.file(pagesSecret) }

// Done closes when the engine has ended; Err then says why, nil after a clean stop.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err says why the engine ended. Call it after Done.
func (s *Server) Err() error { return s.err }

// Stop stops the engine cleanly and returns when it has ended. It may be called again.
func (s *Server) Stop() error {
	s.stop.Do(func() {
		close(s.stopping)
		s.pipe.Close()
		select {
		case <-s.done:
		case <-time.After(stopDeadline + 5*time.Second):
			_ = s.cmd.Process.Kill()
			<-s.done
		}
		s.dir.Close()
	})
	return s.err
}

// Restart starts the engine again, on the same ports and directory, after it ended by
// itself; Done and Err of the new server speak of the new engine.
func (s *Server) Restart(ctx context.Context) (*Server, error) {
	<-s.done
	return start(ctx, s.cfg, s.dir, s.log)
}

// kill ends an engine that did not get so far as to serve.
func (s *Server) kill() {
	s.pipe.Close()
	if s.cmd.Process != nil {
		_ = s.cmd.Process.Kill()
		<-s.done
	}
}

// lastWords passes the engine's output on and keeps its end for error messages.
type lastWords struct {
	out      io.Writer
	stopping <-chan struct{}
	mu       sync.Mutex
	end      []byte
}

const keptWords = 2048

func (w *lastWords) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end = append(w.end, p...)
	if n := len(w.end) - keptWords; n > 0 {
		w.end = append(w.end[:0], w.end[n:]...)
	}
	select {
	case <-w.stopping:
		// The clean stop is a cancelled query, which the engine reports as an error.
		if bytes.Contains(p, []byte("(QUERY_WAS_CANCELLED)")) {
			return len(p), nil
		}
	default:
	}
	return w.out.Write(p)
}

func (w *lastWords) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.TrimSpace(string(w.end))
}
