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

// apacheKafka starts the broker that production uses as a process of its own, one node
// with everything in a temporary directory, and returns its address.
func apacheKafka(t testing.TB) string {
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
	address, controller := "127.0.0.1:"+freePort(t), "127.0.0.1:"+freePort(t)
	properties := filepath.Join(dir, "server.properties")
	if err := os.WriteFile(properties, []byte(kafkaProperties(address, controller, filepath.Join(dir, "data"))), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(class string, args ...string) *exec.Cmd {
		return exec.Command(java, append([]string{"-Xmx768m", "-cp", filepath.Join(jars, "*"), class}, args...)...)
	}
	if out, err := run("kafka.tools.StorageTool", "format", "--config", properties, "--cluster-id", "c2x1aWNlLWl0LWNsdXN0ZQ", "--standalone").CombinedOutput(); err != nil {
		t.Fatalf("format Kafka's storage: %v\n%s", err, out)
	}
	server := run("kafka.Kafka", properties)
	said := &output{}
	server.Stdout, server.Stderr = said, said
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { server.Wait(); close(done) }()
	t.Cleanup(func() {
		server.Process.Signal(syscall.SIGTERM)
		select {
		case <-done:
		case <-time.After(time.Minute):
			server.Process.Kill()
			<-done
		}
	})
	awaitKafka(t, address, done, said)
	return address
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

// awaitKafka waits until the broker answers.
func awaitKafka(t testing.TB, address string, ended <-chan struct{}, said *output) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(address))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx := within(t)
	for {
		one, cancel := context.WithTimeout(ctx, time.Second)
		err := cl.Ping(one)
		cancel()
		if err == nil {
			return
		}
		select {
		case <-ended:
			t.Fatalf("Kafka ended; it said:\n%s", said)
		case <-ctx.Done():
			t.Fatalf("Kafka does not answer: %v; it said:\n%s", err, said)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
