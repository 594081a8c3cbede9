package access

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/goleak"

	"github.com/sluice-rl/sluice/topology/process"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// launch gives the configuration as a program gets it: by flags, variables and Check.
func launch(t *testing.T, environ map[string]string, args ...string) (*Config, string) {
	t.Helper()
	c := &Config{}
	var stderr strings.Builder
	process.Run(process.Command{
		Name:  "x",
		Flags: func(f *process.Flags) { c.Register(f.Group("Kafka")) },
		Check: c.Check,
		Run:   func(context.Context, *process.Life) error { return nil },
	}, process.System{
		Args: args, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &stderr,
		Environ: func(name string) (string, bool) { v, ok := environ[name]; return v, ok },
	})
	return c, stderr.String()
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	authority := newAuthority(t)
	cert, key := authority.issue(t, dir, "client")
	ca := write(t, dir, "ca.pem", authority.pem)
	password := write(t, dir, "password", []byte("pw\n"))
	for _, c := range []struct {
		args string
		want string // in the error; empty: it is taken
	}{
		{"", ""},
		{"--kafka-tls", ""},
		{"--kafka-tls --kafka-ca-file " + ca, ""},
		{"--kafka-tls --kafka-cert-file " + cert + " --kafka-key-file " + key, ""},
		{"--kafka-tls --kafka-sasl scram-sha-512 --kafka-user u --kafka-password-file " + password, ""},
		{"--kafka-sasl scram-sha-256 --kafka-sasl-without-tls --kafka-user u --kafka-password-file " + password, ""},
		{"--kafka-tls --kafka-sasl oauthbearer --kafka-token-file " + password, ""},
		{"--kafka-tls --kafka-sasl aws-msk-iam", ""},

		{"--kafka-ca-file " + ca, "--kafka-ca-file is given without --kafka-tls"},
		{"--kafka-tls --kafka-cert-file " + cert, "need each other"},
		{"--kafka-tls --kafka-cert-file " + cert + " --kafka-key-file " + ca, "--kafka-key-file"},
		{"--kafka-tls --kafka-ca-file " + password, "holds no certificate"},
		{"--kafka-tls --kafka-ca-file " + ca + ".not", "no such file"},
		{"--kafka-tls --kafka-sasl scram", `"scram": want one of plain`},
		{"--kafka-tls --kafka-sasl PLAIN", `"PLAIN"`},
		{"--kafka-tls --kafka-sasl plain --kafka-user u", "SLUICE_KAFKA_PASSWORD"},
		{"--kafka-tls --kafka-sasl plain --kafka-password-file " + password, "needs --kafka-user"},
		{"--kafka-tls --kafka-sasl oauthbearer", "SLUICE_KAFKA_TOKEN"},
		{"--kafka-tls --kafka-user u", "--kafka-user is given"},
		{"--kafka-sasl aws-msk-iam", "needs --kafka-tls"},
		{"--kafka-sasl plain --kafka-user u --kafka-password-file " + password, "--kafka-sasl-without-tls"},
		{"--kafka-sasl-without-tls", "does nothing"},
		{"--kafka-tls --kafka-sasl-without-tls --kafka-sasl plain --kafka-user u --kafka-password-file " + password, "does nothing"},
		{"--kafka-tls --kafka-sasl plain --kafka-user u --kafka-password-file " + password + ".not", "no such file"},
	} {
		_, said := launch(t, nil, strings.Fields(c.args)...)
		if c.want == "" && said != "" || !strings.Contains(said, c.want) {
			t.Errorf("%s\nsaid %q, want %q", c.args, said, c.want)
		}
	}
}

func TestArgsGiveAnotherProcessTheSame(t *testing.T) {
	password := write(t, t.TempDir(), "password", []byte("pw\n"))
	c, said := launch(t, map[string]string{"SLUICE_KAFKA_USER": "u"}, "--kafka-tls", "--kafka-sasl", "plain", "--kafka-password-file", password)
	if said != "" {
		t.Fatal(said)
	}
	got := c.Args()
	slices.Sort(got)
	want := []string{"--kafka-password-file=" + password, "--kafka-sasl=plain", "--kafka-tls=true", "--kafka-user=u"}
	if !slices.Equal(got, want) {
		t.Errorf("args %q, want %q", got, want)
	}
	if c, _ := launch(t, nil); len(c.Args()) > 0 || len(c.Options()) > 0 {
		t.Errorf("nothing was given: args %v, %d options", c.Args(), len(c.Options()))
	}
}

// A password and certificates that are changed while the process runs are used for the
// connections that come after.
func TestRotation(t *testing.T) {
	dir := t.TempDir()
	old := newAuthority(t)
	ca := write(t, dir, "ca.pem", old.pem)
	password := write(t, dir, "password", []byte("first\n"))
	c, said := launch(t, nil, "--kafka-tls", "--kafka-ca-file", ca, "--kafka-sasl", "plain", "--kafka-user", "u", "--kafka-password-file", password)
	if said != "" {
		t.Fatal(said)
	}
	first := func() string {
		t.Helper()
		_, sent, err := c.mechanism().Authenticate(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		return string(sent)
	}
	if got := first(); got != "\x00u\x00first" {
		t.Errorf("sent %q", got)
	}
	write(t, dir, "password", []byte("second\n"))
	if got := first(); got != "\x00u\x00second" {
		t.Errorf("after the change sent %q", got)
	}
	if err := os.Remove(password); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.mechanism().Authenticate(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "--kafka-password-file") {
		t.Errorf("without the file: %v, want an error that names the flag", err)
	}

	renewed := newAuthority(t)
	address := serveTLS(t, renewed)
	dial := func() error {
		conn, err := c.dial(t.Context(), "tcp", address)
		if err == nil {
			conn.Close()
		}
		return err
	}
	if err := dial(); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("a server of an unknown authority: %v", err)
	}
	write(t, dir, "ca.pem", renewed.pem)
	if err := dial(); err != nil {
		t.Errorf("after the change of --kafka-ca-file: %v", err)
	}
	write(t, dir, "ca.pem", []byte("garbage"))
	if err := dial(); err == nil || !strings.Contains(err.Error(), "--kafka-ca-file") {
		t.Errorf("a broken file: %v, want an error that names the flag", err)
	}
}

// AWS credentials come from where every AWS tool finds them.
func TestAWSCredentials(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	c := Config{Mechanism: AWSMSKIAM, TLS: true}
	_, sent, err := c.mechanism().Authenticate(t.Context(), "b-1.x.kafka.eu-west-1.amazonaws.com:9098")
	if err != nil {
		t.Fatal(err)
	}
	if text := string(sent); !strings.Contains(text, "AKIAEXAMPLE") || strings.Contains(text, `"secret"`) {
		t.Errorf("sent %s: want the key's name, and its secret nowhere", text)
	}
}

func TestNoFlagTakesASecret(t *testing.T) {
	f := pflag.NewFlagSet("x", pflag.ContinueOnError)
	(&Config{}).Register(f)
	for _, name := range []string{"kafka-password", "kafka-token"} {
		if f.Lookup(name) != nil || f.Lookup(name+"-file") == nil {
			t.Errorf("%s: want a flag for its file alone", name)
		}
	}
}

// authority issues certificates for 127.0.0.1.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, der := sign(t, nil, nil, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

func sign(t *testing.T, parent *x509.Certificate, by *ecdsa.PrivateKey, template *x509.Certificate) (*ecdsa.PrivateKey, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if by == nil {
		parent, by = template, key
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	template.Subject = pkix.Name{CommonName: "sluice test " + template.SerialNumber.String()}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	return key, der
}

func (a *authority) issue(t *testing.T, dir, name string) (certFile, keyFile string) {
	t.Helper()
	key, der := sign(t, a.cert, a.key, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, dir, name+".pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		write(t, dir, name+".key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
}

// serveTLS answers handshakes until the test ends.
func serveTLS(t *testing.T, a *authority) string {
	t.Helper()
	certFile, keyFile := a.issue(t, t.TempDir(), "server")
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.(*tls.Conn).HandshakeContext(context.Background())
			conn.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

func write(t *testing.T, dir, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
