package access

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"time"
)

// connectWithin bounds one connection with its handshake, as the client does by itself.
const connectWithin = 10 * time.Second

// dial opens one connection with the certificates that the files hold now.
func (c *Config) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	config, err := c.tlsConfig(host)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	return (&tls.Dialer{Config: config}).DialContext(ctx, network, address)
}

func (c *Config) tlsConfig(host string) (*tls.Config, error) {
	config := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("--kafka-ca-file: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--kafka-ca-file: %s holds no certificate in PEM", c.CAFile)
		}
	}
	if c.CertFile != "" && c.KeyFile != "" {
		own, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("--kafka-cert-file and --kafka-key-file: %w", err)
		}
		config.Certificates = []tls.Certificate{own}
	}
	return config, nil
}
