package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/schemas/clickhouse/clickhousetest"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/internal/stage"
	"github.com/sluice-rl/sluice/stages/internal/testkit/kafkatest"
)

// killAt makes the test binary a metrics-writer that kills itself at a point: the name
// of a step, or of a table that was inserted.
const (
	killAt     = "METRICS_WRITER_TEST_KILL_AT"
	killSerial = "METRICS_WRITER_TEST_SERIAL"
)

func TestMain(m *testing.M) {
	point, child := os.LookupEnv(killAt)
	if !child {
		os.Exit(m.Run())
	}
	die := func(at string) {
		if at == point {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	os.Exit(stage.Main(spec(&probe{
		at:       func(at kafka.RangeStep, _ kafka.Range) { die(string(at)) },
		inserted: func(table string, _ kafka.Range) { die(table) },
		serial:   os.Getenv(killSerial) != "",
	})))
}

// bench is a broker, a ClickHouse and a way to run writers between them.
type bench struct {
	t        *testing.T
	w        *kafkatest.World
	ch       *clickhousetest.Server
	database string
	protocol clickhouse.Protocol
	said     *os.File
}

func (b *bench) writer(point string) *exec.Cmd {
	b.t.Helper()
	addr, protocol := b.ch.TCP, "native"
	if b.protocol == clickhouse.HTTP {
		addr, protocol = b.ch.HTTP, "http"
	}
	cmd := exec.Command(os.Args[0],
		"--brokers", strings.Join(b.w.Cluster().Brokers, ","), "--namespace", b.w.Cluster().Namespace,
		"--clickhouse-addr", addr, "--clickhouse-protocol", protocol, "--clickhouse-database", b.database,
		"--clickhouse-user", "writer", "--clickhouse-password-file", b.ch.WriterPasswordFile,
		"--instance-id", "killed", "--batch-records", "7", "--batch-interval", "50ms")
	cmd.Env = append(os.Environ(), killAt+"="+point)
	if b.protocol == clickhouse.Native {
		cmd.Env = append(cmd.Env, killSerial+"=1")
	}
	cmd.Stderr = b.said
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

func (b *bench) count(conn driver.Conn, query string) uint64 {
	b.t.Helper()
	var n uint64
	if err := conn.QueryRow(b.t.Context(), query).Scan(&n); err != nil {
		b.t.Fatalf("%s: %v", query, err)
	}
	return n
}

func (b *bench) putRaw(topic, value string) {
	b.t.Helper()
	cl, err := kafka.NewClient(b.w.Cluster(), "test", "raw")
	if err != nil {
		b.t.Fatal(err)
	}
	defer cl.Close()
	r := &kgo.Record{Topic: b.w.Cluster().Namespace + topic, Value: []byte(value)}
	if err := cl.ProduceSync(b.t.Context(), r).FirstErr(); err != nil {
		b.t.Fatal(err)
	}
}

// A metrics-writer is killed after each step that there is, in turn; then one is left
// to finish. Every table must hold each row once, before any merge.
//
// Over the native protocol it is killed between inserts only, one of which runs at a
// time: libchdb's engine aborts when a native client vanishes in mid-insert. Over HTTP
// the kills fall anywhere.
func TestKilledAfterEachStepNothingIsDoubledOrLost(t *testing.T) {
	ch := clickhousetest.Start(t)
	for name, protocol := range map[string]clickhouse.Protocol{"native": clickhouse.Native, "http": clickhouse.HTTP} {
		t.Run(name, func(t *testing.T) {
			kafkatest.RunReal(t, func(w *kafkatest.World) {
				said, err := os.Create(filepath.Join(t.TempDir(), "said"))
				if err != nil {
					t.Fatal(err)
				}
				b := &bench{t: t, w: w, ch: ch, database: "kills_" + name, protocol: protocol, said: said}
				defer func() {
					if t.Failed() {
						text, _ := os.ReadFile(said.Name())
						t.Logf("the writers said:\n%s", text)
					}
				}()
				b.kills()
			})
		})
	}
}

func (b *bench) kills() {
	t := b.t
	want := map[string]uint64{}
	points := []string{"trajectories", "turns", "group_members", "groups", "group_fates",
		"step_batches", "batch_members", "micro_batches", "trainer_reports", "trainer_annotations", "policy_updates", "dead_letters"}
	if b.protocol == clickhouse.HTTP {
		points = append([]string{"formed", "pending", "letters", "written", "committed"}, points...)
	}
	for i, point := range points {
		for n := range 5 {
			all := everything(uint64(i*5 + n + 1))
			b.w.Put(all.outputs...)
			for table, rows := range all.rows {
				want[table] += rows
			}
		}
		b.putRaw("scored", fmt.Sprint("no message ", i))
		cmd := b.writer(point)
		exited := make(chan error, 1)
		go func() { exited <- cmd.Wait() }()
		select {
		case <-exited:
			if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
				t.Fatalf("at %s the writer ended with %v, want a kill", point, cmd.ProcessState)
			}
		case <-time.After(time.Minute):
			t.Fatalf("the writer did not reach %s", point)
		}
		if i == 0 {
			// Merges would hide a row that stands twice. The tables must exist first.
			b.stopMerges()
		}
	}
	last := b.writer("")
	conn := b.ch.Open(t, b.protocol, b.database)
	want["dead_letters"] += uint64(len(points))
	deadline := time.Now().Add(time.Minute)
	for table, n := range want {
		for b.count(conn, "SELECT count() FROM "+table+" FINAL") < n && time.Now().Before(deadline) {
			time.Sleep(50 * time.Millisecond)
		}
	}
	_ = last.Process.Signal(syscall.SIGTERM)
	if err := last.Wait(); err != nil {
		t.Errorf("the last writer: %v, want a clean end after SIGTERM", err)
	}
	for table, n := range want {
		if table == "dead_letters" {
			// A letter may be written twice where its writer died before it could say
			// so; it is one row all the same.
			if got := b.count(conn, "SELECT count() FROM dead_letters FINAL"); got != n {
				t.Errorf("dead_letters: %d rows, want %d", got, n)
			}
			continue
		}
		if got := b.count(conn, "SELECT count() FROM "+table); got != n {
			t.Errorf("%s: %d rows, want %d", table, got, n)
		}
		if got := b.count(conn, "SELECT uniqExact(source_partition, source_offset) FROM "+table); got == 0 {
			t.Errorf("%s: no sources", table)
		}
	}
	// What the views say of it.
	if got := b.count(conn, "SELECT count() FROM trajectory_fates"); got != want["trajectories"] {
		t.Errorf("trajectory_fates has %d rows, trajectories %d", got, want["trajectories"])
	}
	if got := b.count(conn, "SELECT sum(trajectories) FROM step_summary"); got != want["trajectories"] {
		t.Errorf("step_summary counts %d trajectories, want %d", got, want["trajectories"])
	}
	b.doubledRowsCountOnce(conn, want["trajectories"])
}

func (b *bench) stopMerges() {
	b.t.Helper()
	conn := b.ch.Open(b.t, b.protocol, b.database)
	rows, err := conn.Query(b.t.Context(), "SELECT name FROM system.tables WHERE database = {db:String} AND engine LIKE '%MergeTree'", clickhouse.Named("db", b.database))
	if err != nil {
		b.t.Fatal(err)
	}
	var tables []string
	for rows.Next() {
		var table string
		if err := rows.Scan(&table); err != nil {
			b.t.Fatal(err)
		}
		tables = append(tables, table)
	}
	rows.Close()
	for _, table := range tables {
		if err := conn.Exec(b.t.Context(), "ALTER TABLE "+table+" MODIFY SETTING max_bytes_to_merge_at_max_space_in_pool = 1, max_bytes_to_merge_at_min_space_in_pool = 1, parts_to_throw_insert = 100000, parts_to_delay_insert = 100000"); err != nil {
			b.t.Fatal(err)
		}
	}
}

// The second line of defence: were rows ever inserted under another token, the views
// would still count them once.
func (b *bench) doubledRowsCountOnce(conn driver.Conn, want uint64) {
	b.t.Helper()
	for _, table := range []string{"trajectories", "turns", "groups", "group_fates", "group_members", "step_batches", "batch_members"} {
		if err := conn.Exec(b.t.Context(), "INSERT INTO "+table+" SELECT * FROM "+table); err != nil {
			b.t.Fatal(err)
		}
	}
	if raw := b.count(conn, "SELECT count() FROM trajectories"); raw != 2*want {
		b.t.Fatalf("%d raw rows, want %d: the test did not double them", raw, 2*want)
	}
	if got := b.count(conn, "SELECT count() FROM trajectory_fates"); got != want {
		b.t.Errorf("trajectory_fates has %d rows of doubled ones, want %d", got, want)
	}
	if got := b.count(conn, "SELECT sum(trajectories) FROM step_summary"); got != want {
		b.t.Errorf("step_summary counts %d trajectories of doubled rows, want %d", got, want)
	}
}

func TestAnAbsentClickHouseIsWaitedForAndAnOutageLosesNothing(t *testing.T) {
	bin, dir := clickhousetest.Build(t), t.TempDir()
	kafkatest.RunReal(t, func(w *kafkatest.World) {
		// Two free ports that stay the same over restarts.
		ch := clickhousetest.StartAt(t, bin, dir, "0", "0")
		_, httpPort, _ := strings.Cut(ch.HTTP, ":")
		_, tcpPort, _ := strings.Cut(ch.TCP, ":")
		ch.Stop()
		b := &bench{t: t, w: w, ch: ch, database: "outage", protocol: clickhouse.HTTP}
		w.Put(everything(1).outputs...)
		b.writer("")
		time.Sleep(300 * time.Millisecond)
		ch = clickhousetest.StartAt(t, bin, dir, httpPort, tcpPort)
		b.ch = ch
		await := func(n uint64) {
			t.Helper()
			var got uint64
			for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
				conn, err := clickhouse.Open(ch.Options(clickhouse.HTTP, "outage"))
				if err != nil {
					t.Fatal(err)
				}
				err = conn.QueryRow(context.Background(), "SELECT count() FROM trajectories").Scan(&got)
				conn.Close()
				if err == nil && got == n {
					return
				}
			}
			t.Fatalf("%d trajectories, want %d", got, n)
		}
		await(2)
		ch.Kill()
		w.Put(everything(2).outputs...)
		time.Sleep(500 * time.Millisecond)
		ch = clickhousetest.StartAt(t, bin, dir, httpPort, tcpPort)
		await(4)
	})
}
