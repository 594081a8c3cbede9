package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// kafka is Apache Kafka as a process of its own: one node, everything in a temporary
// directory.
type kafka struct {
	t          testing.TB
	java, jars string
	properties string
	address    string
	server     *exec.Cmd
	done       chan struct{}
	said       *output
}

// apacheKafka starts the broker that production uses, until the test ends.
func apacheKafka(t testing.TB) *kafka {
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
	k := &kafka{t: t, java: java, jars: jars, properties: filepath.Join(dir, "server.properties"), address: "127.0.0.1:" + freePort(t), said: &output{}}
	text := kafkaProperties(k.address, "127.0.0.1:"+freePort(t), filepath.Join(dir, "data"))
	if err := os.WriteFile(k.properties, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	format := k.command("kafka.tools.StorageTool", "format", "--config", k.properties, "--cluster-id", "c2x1aWNlLWl0LWNsdXN0ZQ", "--standalone")
	if out, err := format.CombinedOutput(); err != nil {
		t.Fatalf("format Kafka's storage: %v\n%s", err, out)
	}
	k.start()
	t.Cleanup(func() {
		k.server.Process.Signal(syscall.SIGTERM)
		select {
		case <-k.done:
		case <-time.After(time.Minute):
			k.server.Process.Kill()
			<-k.done
		}
	})
	return k
}

func (k *kafka) command(class string, args ...string) *exec.Cmd {
	return exec.Command(k.java, append([]string{"-Xmx768m", "-cp", filepath.Join(k.jars, "*"), class}, args...)...)
}

// start starts the server and waits until it answers.
func (k *kafka) start() {
	k.t.Helper()
	server, done := k.command("kafka.Kafka", k.properties), make(chan struct{})
	server.Stdout, server.Stderr = k.said, k.said
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := server.Start(); err != nil {
		k.t.Fatal(err)
	}
	go func() { server.Wait(); close(done) }()
	k.server, k.done = server, done
	k.await()
}

// crash kills the server and starts it again.
func (k *kafka) crash() {
	k.t.Helper()
	old := k.server.Process.Pid
	k.server.Process.Kill()
	<-k.done
	k.start()
	k.t.Logf("killed Kafka (process %d), process %d took over", old, k.server.Process.Pid)
}

func kafkaProperties(address, controller, data string) string {
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
func (k *kafka) await() {
	k.t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(k.address))
	if err != nil {
		k.t.Fatal(err)
	}
	defer cl.Close()
	ctx := within(k.t)
	for {
		one, cancel := context.WithTimeout(ctx, time.Second)
		err := cl.Ping(one)
		cancel()
		if err == nil {
			return
		}
		select {
		case <-k.done:
			k.t.Fatalf("Kafka ended; it said:\n%s", k.said)
		case <-ctx.Done():
			k.t.Fatalf("Kafka does not answer: %v; it said:\n%s", err, k.said)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
