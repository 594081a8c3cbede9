package integration

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"

	"github.com/sluice-rl/sluice/integration/apachekafka"
)

var (
	brokersFlag  = flag.String("brokers", "", "addresses: Kafka brokers, 4.2 or later")
	clickFlag    = flag.String("clickhouse-addr", "", "addresses: ClickHouse, host:port of the native protocol")
	clickUser    = flag.String("clickhouse-user", "default", "addresses: its user, allowed to create and write the database")
	clickSecret  = flag.String("clickhouse-password-file", "", "addresses: file with the user's password")
	kafkaImage   = flag.String("kafka-image", "apache/kafka:4.2.0", "containers: image of Kafka, 4.2 or later")
	clickImage   = flag.String("clickhouse-image", "clickhouse/clickhouse-server:26.3", "containers: image of ClickHouse")
	containerFor = 3 * time.Minute
)

// services are where a run keeps its records and rows.
type services struct {
	// flags of `sluice up`; none where everything is embedded.
	flags []string
	// namespace of the topics.
	namespace string
	database  string
	// brokers, click and account are set before the run, or by inspect after it.
	brokers        []string
	click          string
	user, password string
	// kafka is the broker, where the suite started it.
	kafka *apachekafka.Broker
}

// embedded: sluice up starts everything. After the run the same binaries serve the
// data that it left, so that it can be looked at.
func embedded(testing.TB) *services { return &services{database: "sluice"} }

// inspect opens what an embedded run left in its directory.
func (s *services) inspect(t testing.TB, dir string) {
	t.Helper()
	if len(s.brokers) > 0 {
		return
	}
	_, kafka := startReady(t, "sluice-broker", "--data-dir", filepath.Join(dir, "data", "broker"), "--port", "0")
	s.brokers = []string{kafka["kafka"].(string)}
	s.ownClickHouse(t, filepath.Join(dir, "data", "clickhouse"))
}

func (s *services) ownClickHouse(t testing.TB, dataDir string) {
	t.Helper()
	args := []string{"--data-dir", dataDir, "--http-port", "0", "--tcp-port", "0", "--lib", filepath.Join(checkout(t), ".tools", "lib", "libchdb.so")}
	_, ready := startReady(t, "sluice-clickhouse", args...)
	s.click, s.user = ready["tcp"].(string), ready["writer_user"].(string)
	s.password = secret(t, ready["writer_password_file"].(string))
	s.flags = append(s.flags, "--clickhouse-addr", s.click, "--clickhouse-user", s.user, "--clickhouse-password-file", ready["writer_password_file"].(string))
}

// addresses: those of the flags; where there are none, of Apache Kafka and of
// sluice-clickhouse started here.
func addresses(t testing.TB) *services {
	t.Helper()
	s := &services{namespace: "it-" + strings.ToLower(time.Now().Format("150405.000")) + ".", database: "sluice"}
	if *brokersFlag != "" {
		s.brokers = strings.Split(*brokersFlag, ",")
	} else {
		s.kafka = apachekafka.Start(t)
		s.brokers = []string{s.kafka.Address}
	}
	s.flags = append(s.flags, "--brokers", strings.Join(s.brokers, ","), "--namespace", s.namespace)
	if *clickFlag == "" {
		s.ownClickHouse(t, reachable(t))
		return s
	}
	s.click, s.user = *clickFlag, *clickUser
	s.flags = append(s.flags, "--clickhouse-addr", s.click, "--clickhouse-user", s.user)
	if *clickSecret != "" {
		s.password = secret(t, *clickSecret)
		s.flags = append(s.flags, "--clickhouse-password-file", *clickSecret)
	}
	return s
}

// containers: real Kafka and ClickHouse, where Docker has the images.
func containers(t testing.TB) *services {
	t.Helper()
	for _, image := range []string{*kafkaImage, *clickImage} {
		if why := lacksImage(image); why != "" {
			t.Skipf("containers: %s", why)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), containerFor)
	defer cancel()
	s := &services{namespace: "it.", database: "sluice", user: "default", password: "integration"}
	port := freePort(t)
	s.brokers = []string{"127.0.0.1:" + port}
	run(ctx, t, testcontainers.ContainerRequest{
		Image: *kafkaImage,
		// The broker must advertise an address that this machine reaches.
		ExposedPorts: []string{port + ":" + port},
		Env: map[string]string{
			"KAFKA_NODE_ID": "1", "KAFKA_PROCESS_ROLES": "broker,controller",
			"KAFKA_LISTENERS":                                        "OUT://0.0.0.0:" + port + ",CONTROLLER://127.0.0.1:9093",
			"KAFKA_ADVERTISED_LISTENERS":                             "OUT://127.0.0.1:" + port,
			"KAFKA_LISTENER_SECURITY_PROTOCOL_MAP":                   "OUT:PLAINTEXT,CONTROLLER:PLAINTEXT",
			"KAFKA_CONTROLLER_LISTENER_NAMES":                        "CONTROLLER",
			"KAFKA_INTER_BROKER_LISTENER_NAME":                       "OUT",
			"KAFKA_CONTROLLER_QUORUM_VOTERS":                         "1@127.0.0.1:9093",
			"KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR":                 "1",
			"KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR":         "1",
			"KAFKA_TRANSACTION_STATE_LOG_MIN_ISR":                    "1",
			"KAFKA_SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR": "1",
			"KAFKA_SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR":            "1",
			"KAFKA_GROUP_SHARE_DELIVERY_COUNT_LIMIT":                 "10",
			"KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS":                 "0",
		},
		WaitingFor: wait.ForLog("Kafka Server started"),
	})
	click := run(ctx, t, testcontainers.ContainerRequest{
		Image: *clickImage, ExposedPorts: []string{"9000/tcp"},
		Env:        map[string]string{"CLICKHOUSE_PASSWORD": s.password, "CLICKHOUSE_DEFAULT_ACCESS_MANAGEMENT": "1"},
		WaitingFor: wait.ForListeningPort("9000/tcp"),
	})
	address, err := click.PortEndpoint(ctx, "9000/tcp", "")
	if err != nil {
		t.Fatal(err)
	}
	s.click = address
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(s.password), 0o600); err != nil {
		t.Fatal(err)
	}
	s.flags = []string{
		"--brokers", s.brokers[0], "--namespace", s.namespace,
		"--clickhouse-addr", s.click, "--clickhouse-user", s.user, "--clickhouse-password-file", file,
	}
	return s
}

func run(ctx context.Context, t testing.TB, req testcontainers.ContainerRequest) testcontainers.Container {
	t.Helper()
	c, err := testcontainers.GenericContainer(ctx, testcontainers.GenericContainerRequest{ContainerRequest: req, Started: true})
	testcontainers.CleanupContainer(t, c)
	if err != nil {
		t.Fatalf("start %s: %v", req.Image, err)
	}
	return c
}

// lacksImage says why an image cannot be run here, "" if it can. Nothing is pulled.
func lacksImage(image string) string {
	docker, err := exec.LookPath("docker")
	if err != nil {
		return "docker is not installed"
	}
	var said bytes.Buffer
	cmd := exec.Command(docker, "image", "inspect", image)
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			return err.Error()
		}
		return "docker cannot give image " + image + ": " + strings.TrimSpace(said.String())
	}
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

// reachable is a folder below which an unprivileged user can be given one of its own:
// t.TempDir is closed to others.
func reachable(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sluice-it-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "data")
}

func secret(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// sql opens ClickHouse.
func (s *services) sql(t testing.TB) ch.Conn {
	t.Helper()
	conn, err := ch.Open(&ch.Options{
		Addr: []string{s.click}, Auth: ch.Auth{Database: s.database, Username: s.user, Password: s.password},
		DialTimeout: 10 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}
