package apachekafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// patience bounds the wait for a broker that starts: a machine with two busy cores is
// slow, not broken.
const patience = 3 * time.Minute

// Broker is one node of Apache Kafka.
type Broker struct {
	// Address is where clients reach it, host:port.
	Address string

	t          testing.TB
	java, jars string
	properties string
	server     *exec.Cmd
	done       chan struct{}
	log        *output
}

// Start starts a broker that runs until the test ends. Where Kafka is not installed the
// test is skipped, in CI it fails.
func Start(t testing.TB) *Broker { return startWith(t, nil, nil) }

// startWith starts a broker with further properties, which win, and further arguments for
// the formatting of its storage. Nil: none.
func startWith(t testing.TB, more func(address, controller string) []string, format []string) *Broker {
	t.Helper()
	jars := filepath.Join(checkout(t), ".tools", "kafka")
	java, err := exec.LookPath("java")
	if _, missing := os.Stat(jars); err != nil || missing != nil {
		why := fmt.Sprintf("Apache Kafka is not installed (%v): run `make kafka`", errors.Join(err, missing))
		if os.Getenv("CI") != "" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	dir := t.TempDir()
	b := &Broker{t: t, java: java, jars: jars, properties: filepath.Join(dir, "server.properties"), Address: "127.0.0.1:" + freePort(t), log: &output{}}
	controller := "127.0.0.1:" + freePort(t)
	text := properties(b.Address, controller, filepath.Join(dir, "data"))
	if more != nil {
		text += strings.Join(more(b.Address, controller), "\n") + "\n"
	}
	if err := os.WriteFile(b.properties, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	formatting := b.command("kafka.tools.StorageTool", append([]string{"format", "--config", b.properties, "--cluster-id", "c2x1aWNlLWl0LWNsdXN0ZQ", "--standalone"}, format...)...)
	if out, err := formatting.CombinedOutput(); err != nil {
		t.Fatalf("format Kafka's storage: %v\n%s", err, out)
	}
	b.start()
	t.Cleanup(func() {
		b.server.Process.Signal(syscall.SIGTERM)
		select {
		case <-b.done:
		case <-time.After(time.Minute):
			b.server.Process.Kill()
			<-b.done
		}
	})
	return b
}

func (b *Broker) command(class string, args ...string) *exec.Cmd {
	// A broker that lives for a minute starts sooner and works as fast without the second
	// compiler.
	return exec.Command(b.java, append([]string{"-Xmx768m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", filepath.Join(b.jars, "*"), class}, args...)...)
}

// start starts the server and waits until it answers.
func (b *Broker) start() {
	b.t.Helper()
	server, done := b.command("kafka.Kafka", b.properties), make(chan struct{})
	server.Stdout, server.Stderr = b.log, b.log
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := server.Start(); err != nil {
		b.t.Fatal(err)
	}
	go func() { server.Wait(); close(done) }()
	b.server, b.done = server, done
	b.await()
}

// Crash ends the broker by SIGKILL, starts it again and waits until it answers.
func (b *Broker) Crash() {
	b.t.Helper()
	old := b.server.Process.Pid
	b.kill()
	b.start()
	b.t.Logf("killed Kafka (process %d), process %d took over", old, b.server.Process.Pid)
}

func (b *Broker) kill() {
	b.server.Process.Kill()
	<-b.done
}

func properties(address, controller, data string) string {
	return strings.Join([]string{
		"process.roles=broker,controller", "node.id=1",
		"listeners=OUT://" + address + ",CONTROLLER://" + controller,
		"advertised.listeners=OUT://" + address,
		"listener.security.protocol.map=OUT:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"controller.listener.names=CONTROLLER", "inter.broker.listener.name=OUT",
		"controller.quorum.bootstrap.servers=" + controller,
		"log.dirs=" + data, "auto.create.topics.enable=false",
		"offsets.topic.replication.factor=1", "offsets.topic.num.partitions=4",
		"transaction.state.log.replication.factor=1", "transaction.state.log.min.isr=1", "transaction.state.log.num.partitions=4",
		"share.coordinator.state.topic.replication.factor=1", "share.coordinator.state.topic.min.isr=1", "share.coordinator.state.topic.num.partitions=4",
		"group.initial.rebalance.delay.ms=0",
		// Above the stages' own limit: a record past the broker's limit vanishes.
		"group.share.delivery.count.limit=10",
	}, "\n") + "\n"
}

// await waits until the broker answers.
func (b *Broker) await() {
	b.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.Address))
	if err != nil {
		b.t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		one, cancel := context.WithTimeout(ctx, time.Second)
		err := cl.Ping(one)
		cancel()
		if err == nil {
			return
		}
		select {
		case <-b.done:
			b.t.Fatalf("Kafka ended; its log:\n%s", b.log)
		case <-ctx.Done():
			b.t.Fatalf("Kafka does not answer: %v; its log:\n%s", err, b.log)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// output collects what the broker logs.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// checkout is the folder that holds go.mod.
func checkout(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
	t.Fatal("no go.mod above this test")
	return ""
}

func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
