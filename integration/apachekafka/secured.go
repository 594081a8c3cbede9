package apachekafka

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Secured is a broker that lets nobody in who does not say who they are, and nobody do
// what they were not given the right to, but at its Address: there everybody may do
// everything, as the broker itself.
type Secured struct {
	*Broker
	// WithPassword takes SASL over TLS, by any mechanism; WithCertificate takes clients'
	// certificates.
	WithPassword, WithCertificate string
	// CAFile is what brokers' certificates are checked against.
	CAFile string

	t  testing.TB
	ca *authority
}

// Admin is the user who may do everything.
const Admin = "admin"

// StartSecured starts a secured broker that knows Admin and the users, each by any of the
// mechanisms plain, scram-sha-256, scram-sha-512 and oauthbearer, or by a certificate.
func StartSecured(t testing.TB, users ...string) *Secured {
	t.Helper()
	dir := t.TempDir()
	s := &Secured{t: t, ca: newAuthority(t)}
	s.CAFile = s.write(dir, "ca.pem", s.ca.pem)
	cert, key := s.ca.issue(t, "broker")
	keystore := s.write(dir, "broker.pem", append(key, cert...))
	address := func() string { return "127.0.0.1:" + freePort(t) }
	s.WithPassword, s.WithCertificate = address(), address()
	const sasl = "listener.name.password."
	plain := "org.apache.kafka.common.security.plain.PlainLoginModule required"
	var format []string
	for _, user := range append([]string{Admin}, users...) {
		plain += fmt.Sprintf(" user_%s=%q", user, password(user))
		for _, mechanism := range []string{"SCRAM-SHA-256", "SCRAM-SHA-512"} {
			format = append(format, "--add-scram", fmt.Sprintf("%s=[name=%s,password=%s]", mechanism, user, password(user)))
		}
	}
	s.Broker = startWith(t, func(inside, controller string) []string {
		return []string{
			"listeners=OUT://" + inside + ",PASSWORD://" + s.WithPassword + ",CERTIFICATE://" + s.WithCertificate + ",CONTROLLER://" + controller,
			"advertised.listeners=OUT://" + inside + ",PASSWORD://" + s.WithPassword + ",CERTIFICATE://" + s.WithCertificate,
			"listener.security.protocol.map=OUT:PLAINTEXT,PASSWORD:SASL_SSL,CERTIFICATE:SSL,CONTROLLER:PLAINTEXT",
			"ssl.keystore.type=PEM", "ssl.keystore.location=" + keystore, "ssl.truststore.type=PEM", "ssl.truststore.location=" + s.CAFile,
			"listener.name.certificate.ssl.client.auth=required",
			`ssl.principal.mapping.rules=RULE:^CN=([^,]*).*$/$1/`,
			sasl + "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
			sasl + "plain.sasl.jaas.config=" + plain + ";",
			sasl + "scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;",
			sasl + "scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;",
			sasl + "oauthbearer.sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub=\"broker\";",
			"authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
			"super.users=User:" + Admin + ";User:ANONYMOUS",
		}
	}, format)
	return s
}

func password(user string) string { return "secret-of-" + user }

// Flags are what a binary of ours is told to be user by a mechanism, or by "certificate".
func (s *Secured) Flags(user, mechanism string) []string {
	s.t.Helper()
	dir := s.t.TempDir()
	flags := []string{"--kafka-tls", "--kafka-ca-file", s.CAFile}
	switch mechanism {
	case "certificate":
		cert, key := s.ca.issue(s.t, user)
		return append(flags, "--brokers", s.WithCertificate, "--kafka-cert-file", s.write(dir, "cert.pem", cert), "--kafka-key-file", s.write(dir, "key.pem", key))
	case "oauthbearer":
		return append(flags, "--brokers", s.WithPassword, "--kafka-sasl", mechanism, "--kafka-token-file", s.write(dir, "token", token(user)))
	}
	return append(flags, "--brokers", s.WithPassword, "--kafka-sasl", mechanism, "--kafka-user", user, "--kafka-password-file", s.write(dir, "password", []byte(password(user))))
}

// token is an unsigned token, which a broker without an identity provider takes.
func token(user string) []byte {
	part := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	now := time.Now()
	return []byte(part(`{"alg":"none"}`) + "." + part(fmt.Sprintf(`{"sub":%q,"iat":%d,"exp":%d}`, user, now.Unix(), now.Add(time.Hour).Unix())) + ".")
}

func (s *Secured) write(dir, name string, content []byte) string {
	s.t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// authority issues certificates for 127.0.0.1.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{}
	a.cert = &x509.Certificate{
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	var der []byte
	a.key, der = a.sign(t, a.cert)
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

// sign makes a key and its certificate; the first is the authority's own.
func (a *authority) sign(t testing.TB, c *x509.Certificate) (*ecdsa.PrivateKey, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	by := a.key
	if by == nil {
		by = key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	return key, der
}

// issue gives a certificate and its key, in PEM.
func (a *authority) issue(t testing.TB, name string) (cert, key []byte) {
	t.Helper()
	private, der := a.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: a.cert.NotBefore, NotAfter: a.cert.NotAfter, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}
