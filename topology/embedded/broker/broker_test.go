package broker

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/topology/process"
	"github.com/sluice-rl/sluice/topology/process/readyfile"
)

// TestMain lets the test binary be the broker, so that it can be killed.
func TestMain(m *testing.M) {
	if os.Getenv("SLUICE_BROKER_UNDER_TEST") != "" {
		os.Exit(process.Main(Program()))
	}
	os.Exit(m.Run())
}

// startProcess runs the broker as a process of its own and returns its address.
func startProcess(t *testing.T, dir string, flags ...string) (*exec.Cmd, string) {
	t.Helper()
	ready := filepath.Join(t.TempDir(), "ready")
	cmd := exec.Command(os.Args[0], append([]string{"--data-dir", dir, "--port", "0", "--ready-file", ready}, flags...)...)
	cmd.Env = append(os.Environ(), "SLUICE_BROKER_UNDER_TEST=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	for range 3000 {
		if addresses, err := readyfile.Read(ready, cmd.Process.Pid); err == nil {
			return cmd, addresses["kafka"]
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("the broker did not become ready; it said:\n%s", log.String())
	return nil, ""
}

func client(t *testing.T, address string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(address)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

func TestWhatIsAcknowledgedSurvivesKill9(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir := filepath.Join(t.TempDir(), "data")
	cmd, address := startProcess(t, dir)
	cl := client(t, address)
	if _, err := kadm.NewClient(cl).CreateTopic(ctx, 2, 1, nil, "prompts"); err != nil {
		t.Fatal(err)
	}
	const n = 200
	for range n {
		if err := cl.ProduceSync(ctx, &kgo.Record{Topic: "prompts", Value: bytes.Repeat([]byte("x"), 1000)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	cmd.Process.Kill()
	cmd.Wait()

	_, address = startProcess(t, dir)
	ends, err := kadm.NewClient(client(t, address)).ListEndOffsets(ctx, "prompts")
	if err != nil {
		t.Fatal(err)
	}
	var got int64
	ends.Each(func(o kadm.ListedOffset) { got += o.Offset })
	if got != n {
		t.Errorf("%d records after kill -9, want the %d acknowledged ones", got, n)
	}
}

func TestACleanStopRemovesTheReadyFile(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	cmd := exec.Command(os.Args[0], "--data-dir", t.TempDir(), "--port", "0", "--ready-file", ready)
	cmd.Env = append(os.Environ(), "SLUICE_BROKER_UNDER_TEST=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := readyfile.Read(ready, cmd.Process.Pid); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Errorf("exit after SIGTERM: %v, want status 0", err)
	}
	if _, err := os.Stat(ready); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("ready file after the stop: %v, want none", err)
	}
}

// A share group needs more members than Kafka allows by default, and starts at the
// oldest record if its config says so.
func TestShareGroupsAreServed(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b, err := Start(Config{DataDir: t.TempDir(), MaxMessageBytes: 8 << 20}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	admin := kadm.NewClient(client(t, b.Address()))
	configs, err := admin.DescribeBrokerConfigs(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"group.share.max.size": "1000", "group.share.delivery.count.limit": "10", "message.max.bytes": "8388608",
	} {
		var got string
		for _, c := range configs[0].Configs {
			if c.Key == name {
				got = c.MaybeValue()
			}
		}
		if got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if _, err := admin.CreateTopic(ctx, 1, 1, nil, "code-calls"); err != nil {
		t.Fatal(err)
	}
	consumer := client(t, b.Address(), kgo.ShareGroup("code-executor"), kgo.ConsumeTopics("code-calls"))
	produced := make(chan error, 1)
	go func() {
		// Until the member is in, a group that starts at latest sees nothing.
		for ctx.Err() == nil {
			err := consumer.ProduceSync(ctx, &kgo.Record{Topic: "code-calls", Value: []byte("call")}).FirstErr()
			if err != nil {
				produced <- err
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	fetches := consumer.PollFetches(ctx)
	cancel()
	if fetches.NumRecords() == 0 {
		t.Errorf("a share member was given nothing: %v", fetches.Err())
	}
	select {
	case err := <-produced:
		t.Errorf("produce: %v", err)
	default:
	}
}

func TestDirectoriesThatAreRefused(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	for _, c := range []struct {
		name string
		make func(t *testing.T, dir string)
		want error
		says string
	}{
		{"of a newer version", func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, markerName), `{"format":2}`)
		}, ErrNewerData, "has format 2, this build reads up to 1"},
		{"with a damaged marker", func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, markerName), `{"form`)
		}, ErrForeignData, "damaged"},
		{"of somebody else", func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "thesis.txt"), "x")
		}, ErrForeignData, "thesis.txt"},
		{"of a running broker", func(t *testing.T, dir string) {
			b, err := Start(Config{DataDir: dir, MaxMessageBytes: 8 << 20}, quiet)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(b.Close)
		}, ErrInUse, "another sluice-broker"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			c.make(t, dir)
			_, err := Start(Config{DataDir: dir, MaxMessageBytes: 8 << 20}, quiet)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %v saying %q", err, c.want, c.says)
			}
			if got := process.ExitCode(err, exits...); got != process.ExitUnusable {
				t.Errorf("exit status %d, want %d: a restart does not help", got, process.ExitUnusable)
			}
		})
	}
}

func TestWrongFlags(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{}, "--data-dir is empty"},
		{[]string{"--data-dir", "d", "--port", "70000"}, "--port is 70000"},
		{[]string{"--data-dir", "d", "--max-message-bytes", "5"}, "--max-message-bytes is 5"},
		{[]string{"--data-dir", "d", "more"}, `argument "more"`},
		{[]string{"--data-dir", "d", "--log-level", "loud"}, `--log-level: "loud"`},
	} {
		var out, err bytes.Buffer
		if got := process.Run(Program(), process.System{Args: c.args, Stdout: &out, Stderr: &err}); got != process.ExitUsage || !strings.Contains(err.String(), c.says) {
			t.Errorf("%q: status %d, said %q; want %d and %q", c.args, got, err.String(), process.ExitUsage, c.says)
		}
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
