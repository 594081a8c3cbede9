package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/topology/process"
)

// Mechanism is how a client proves who it is.
type Mechanism string

// The mechanisms. None leaves it to the client's certificate, or to nobody.
const (
	None        Mechanism = ""
	Plain       Mechanism = "plain"
	ScramSHA256 Mechanism = "scram-sha-256"
	ScramSHA512 Mechanism = "scram-sha-512"
	OAuthBearer Mechanism = "oauthbearer"
	AWSMSKIAM   Mechanism = "aws-msk-iam"
)

var (
	withPassword = []Mechanism{Plain, ScramSHA256, ScramSHA512}
	mechanisms   = append(slices.Clip(withPassword), OAuthBearer, AWSMSKIAM)
)

// Config is what the flags set. The zero value speaks without TLS and names nobody.
type Config struct {
	TLS bool
	// CAFile holds the certificates that brokers' are checked against, in PEM; empty: the
	// system's.
	CAFile string
	// CertFile and KeyFile are the client's own certificate and its key, in PEM.
	CertFile, KeyFile string
	Mechanism         Mechanism
	User              string

	// WithoutTLS permits a password or token on a connection that is not encrypted.
	WithoutTLS bool

	// password and token are nil where none was given.
	password, token func() (string, error)
	flags           *pflag.FlagSet
}

// Register declares the flags.
func (c *Config) Register(to *pflag.FlagSet) {
	f := pflag.NewFlagSet("access", pflag.ContinueOnError)
	f.BoolVar(&c.TLS, "kafka-tls", false, "speak TLS with the brokers and check their names")
	f.StringVar(&c.CAFile, "kafka-ca-file", "", "certificates that the brokers' are checked against, PEM (default: the system's)")
	f.StringVar(&c.CertFile, "kafka-cert-file", "", "certificate of this client, PEM, where brokers want one")
	f.StringVar(&c.KeyFile, "kafka-key-file", "", "key of --kafka-cert-file, PEM")
	f.StringVar((*string)(&c.Mechanism), "kafka-sasl", "", "how this client proves who it is: "+list(mechanisms)+" (default: by its certificate, or not)")
	f.StringVar(&c.User, "kafka-user", "", "user of the mechanisms with a password")
	process.RotatingSecret(f, &c.password, "kafka-password", "the password of --kafka-user")
	process.RotatingSecret(f, &c.token, "kafka-token", "the token of oauthbearer")
	f.BoolVar(&c.WithoutTLS, "kafka-sasl-without-tls", false, "permit a password or token on connections that are not encrypted")
	c.flags = f
	to.AddFlagSet(f)
}

func list(ms []Mechanism) string {
	names := make([]string, len(ms))
	for i, m := range ms {
		names[i] = string(m)
	}
	return strings.Join(names, ", ")
}

// Check refuses settings that contradict each other or would do nothing, and files that
// cannot be used now.
func (c *Config) Check() error {
	for _, file := range []struct{ flag, path string }{
		{"--kafka-ca-file", c.CAFile}, {"--kafka-cert-file", c.CertFile}, {"--kafka-key-file", c.KeyFile},
	} {
		if file.path != "" && !c.TLS {
			return fmt.Errorf("%s is given without --kafka-tls", file.flag)
		}
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		return errors.New("--kafka-cert-file and --kafka-key-file need each other")
	}
	if c.TLS {
		if _, err := c.tlsConfig(""); err != nil {
			return err
		}
	}
	return c.checkMechanism()
}

func (c *Config) checkMechanism() error {
	password := slices.Contains(withPassword, c.Mechanism)
	switch {
	case c.Mechanism != None && !slices.Contains(mechanisms, c.Mechanism):
		return fmt.Errorf("--kafka-sasl: %q: want one of %s", c.Mechanism, list(mechanisms))
	case password && (c.User == "" || c.password == nil):
		return fmt.Errorf("--kafka-sasl %s needs --kafka-user and --kafka-password-file (or %s)", c.Mechanism, process.EnvName("kafka-password"))
	case !password && c.User != "":
		return fmt.Errorf("--kafka-user is given, and --kafka-sasl is none of %s", list(withPassword))
	case c.Mechanism == OAuthBearer && c.token == nil:
		return fmt.Errorf("--kafka-sasl oauthbearer needs --kafka-token-file (or %s)", process.EnvName("kafka-token"))
	case c.Mechanism == AWSMSKIAM && !c.TLS:
		return errors.New("--kafka-sasl aws-msk-iam needs --kafka-tls: MSK takes it over TLS alone")
	case c.Mechanism != None && !c.TLS && !c.WithoutTLS:
		return fmt.Errorf("--kafka-sasl %s without --kafka-tls: who listens on the network can take what is sent, and the password or token with some mechanisms; add --kafka-tls, or --kafka-sasl-without-tls where the network is trusted", c.Mechanism)
	case c.WithoutTLS && (c.TLS || c.Mechanism == None):
		return errors.New("--kafka-sasl-without-tls does nothing here: it is for --kafka-sasl without --kafka-tls")
	}
	return nil
}

// Options make a client connect as configured.
func (c *Config) Options() []kgo.Opt {
	var opts []kgo.Opt
	if c.TLS {
		opts = append(opts, kgo.Dialer(c.dial))
	}
	if m := c.mechanism(); m != nil {
		opts = append(opts, kgo.SASL(m))
	}
	return opts
}

// Args are the flags that give a process of the same machine the same access. A secret
// from the environment is not among them: the process has the environment too.
func (c *Config) Args() []string {
	if c.flags == nil {
		return nil
	}
	var args []string
	c.flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed {
			args = append(args, "--"+f.Name+"="+f.Value.String())
		}
	})
	return args
}
