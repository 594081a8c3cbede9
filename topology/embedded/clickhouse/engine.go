package clickhouse

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sluice-rl/sluice/topology/process"
)

// Engine is a loaded ClickHouse engine.
type Engine interface {
	Version() string
	// Run runs clickhouse-local's arguments until its queries have ended.
	Run(args []string) error
}

// Opener loads the engine from a file.
type Opener func(path string) (Engine, error)

// engineOrder is what the parent tells the engine process: one line of JSON at the
// start of the pipe whose end then means "stop".
type engineOrder struct {
	Dir     string `json:"dir"`
	Library string `json:"library"`
	HTTP    int    `json:"http"`
	TCP     int    `json:"tcp"`
	// UID and GID to become; -1 to stay.
	UID int `json:"uid"`
	GID int `json:"gid"`
	// Bind is an empty directory to bind Dir to, "" where UID can reach Dir.
	Bind         string `json:"bind"`
	WroteEngine  string `json:"wrote_engine"`
	StopPassword string `json:"stop_password"`
	Parent       int    `json:"parent"`
}

const (
	// engineCommand is the first argument of the engine process.
	engineCommand = "engine-process"
	orderFD       = 3
	// versionFD is where the engine process says its version before it serves.
	versionFD = 4
	// stopDeadline is how long a clean stop may take.
	stopDeadline = 15 * time.Second
)

// holdQuery is what the engine waits in. It names no file: a user that may read
// files in order to wait on a pipe may read all of them.
const holdQuery = "SELECT sleepEachRow(0.2) FROM system.numbers SETTINGS max_execution_time=0, max_threads=1, max_block_size=1, function_sleep_max_microseconds_per_block=0 FORMAT Null"

// engineMain is the engine process. It returns the exit status.
func engineMain(open Opener, log *slog.Logger) int {
	err := runEngine(open, log)
	if err != nil {
		log.Error("engine ended", "error", err)
	}
	return process.ExitCode(err, exits...)
}

func runEngine(open Opener, log *slog.Logger) error {
	order, pipe, err := readOrder()
	if err != nil {
		return err
	}
	// Opened as the user that started us, since the other user may not reach it.
	library, err := os.Open(order.Library)
	if err != nil {
		return fmt.Errorf("%w: --lib: %w: `make tools` fetches libchdb.so", ErrUnusable, err)
	}
	defer library.Close()
	dir := order.Dir
	if order.Bind != "" {
		if dir, err = bind(order.Dir, order.Bind); err != nil {
			return err
		}
	}
	if err := becomeUser(order); err != nil {
		return err
	}
	if err := os.Chdir(filepath.Join(dir, emptyName)); err != nil {
		return fmt.Errorf("working directory: %w", err)
	}
	engine, err := open("/proc/self/fd/" + strconv.Itoa(int(library.Fd())))
	if err != nil {
		return fmt.Errorf("%w: --lib %s: %w", ErrUnusable, order.Library, err)
	}
	if newerThan(order.WroteEngine, engine.Version()) {
		return fmt.Errorf("%w: %s was written by ClickHouse %s, %s is %s: use the newer library, or name another directory with --data-dir", ErrNewerData, order.Dir, order.WroteEngine, order.Library, engine.Version())
	}
	sayVersion(engine.Version())

	var asked atomic.Bool
	go func() {
		_, _ = io.Copy(io.Discard, pipe)
		asked.Store(true)
		go func() {
			time.Sleep(stopDeadline)
			log.Error("no clean stop in time", "seconds", stopDeadline.Seconds())
			os.Exit(process.ExitHardStop)
		}()
		for stopQueries(order) != nil {
			time.Sleep(100 * time.Millisecond)
		}
	}()
	err = engine.Run(engineArgs(dir, order))
	if asked.Load() {
		// Ended by the cancelled query, which is no error then.
		return nil
	}
	if err == nil {
		err = errors.New("the engine stopped by itself; its own words stand above")
	}
	return err
}

func engineArgs(dir string, o engineOrder) []string {
	return []string{
		"clickhouse",
		"--path", filepath.Join(dir, engineName),
		"--config-file", filepath.Join(dir, configName),
		"--listen_host", "127.0.0.1",
		"--http_port", strconv.Itoa(o.HTTP),
		"--tcp_port", strconv.Itoa(o.TCP),
		"--query", "SYSTEM START LISTEN HTTP; SYSTEM START LISTEN TCP; " + holdQuery,
	}
}

func readOrder() (engineOrder, io.Reader, error) {
	var o engineOrder
	pipe := os.NewFile(orderFD, "order")
	if pipe == nil {
		return o, nil, fmt.Errorf("%s is started by sluice-clickhouse, not by hand", engineCommand)
	}
	// Byte by byte would be as right; a decoder's buffer only swallows what follows,
	// and nothing does.
	if err := json.NewDecoder(pipe).Decode(&o); err != nil {
		return o, nil, fmt.Errorf("%s is started by sluice-clickhouse, not by hand: %w", engineCommand, err)
	}
	return o, pipe, nil
}

func sayVersion(version string) {
	f := os.NewFile(versionFD, "version")
	if f == nil {
		return
	}
	fmt.Fprintln(f, version)
	f.Close()
}

// bind makes dir reachable by users who may not enter what it lies in. It needs, and is
// given, a mount namespace of the process's own.
func bind(dir, target string) (string, error) {
	if err := unix.Mount(dir, target, "", unix.MS_BIND, ""); err != nil {
		return "", fmt.Errorf("bind %s for the unprivileged engine: %w: let others enter the directories above it (chmod o+x), or name another with --data-dir", dir, err)
	}
	return target, nil
}

// becomeUser gives up root, for good, and ties this process's life to its parent's.
func becomeUser(o engineOrder) error {
	if o.UID >= 0 {
		if err := syscall.Setgroups([]int{}); err != nil {
			return fmt.Errorf("give up root: groups: %w", err)
		}
		if err := syscall.Setgid(o.GID); err != nil {
			return fmt.Errorf("give up root: gid %d: %w", o.GID, err)
		}
		if err := syscall.Setuid(o.UID); err != nil {
			return fmt.Errorf("give up root: uid %d: %w", o.UID, err)
		}
		if os.Getuid() != o.UID || os.Geteuid() != o.UID || syscall.Setuid(0) == nil {
			return fmt.Errorf("give up root: still uid %d", os.Geteuid())
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	// Giving up root cleared the death signal that the parent had set. It belongs to
	// a thread, so this one stays.
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("death signal: %w", err)
	}
	if os.Getppid() != o.Parent {
		return errors.New("the parent process is gone")
	}
	return nil
}

// stopQueries ends the query that the engine waits in, and with it the engine.
func stopQueries(o engineOrder) error {
	c := control{port: o.HTTP, password: o.StopPassword}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	// The engine's own session has an empty user name here.
	_, err := c.query(ctx, "KILL QUERY WHERE user = '' ASYNC")
	return err
}
