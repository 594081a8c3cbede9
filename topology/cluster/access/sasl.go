package access

import (
	"context"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/twmb/franz-go/pkg/sasl"
	mskiam "github.com/twmb/franz-go/pkg/sasl/aws"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// mechanism asks for its secret at every connection.
func (c *Config) mechanism() sasl.Mechanism {
	switch c.Mechanism {
	case Plain:
		return plain.Plain(func(context.Context) (plain.Auth, error) {
			password, err := read("--kafka-password-file", c.password)
			return plain.Auth{User: c.User, Pass: password}, err
		})
	case ScramSHA256:
		return scram.Sha256(c.scram)
	case ScramSHA512:
		return scram.Sha512(c.scram)
	case OAuthBearer:
		return oauth.Oauth(func(context.Context) (oauth.Auth, error) {
			token, err := read("--kafka-token-file", c.token)
			return oauth.Auth{Token: token}, err
		})
	case AWSMSKIAM:
		return mskiam.ManagedStreamingIAM((&awsCredentials{}).take)
	case None:
	}
	return nil
}

func (c *Config) scram(context.Context) (scram.Auth, error) {
	password, err := read("--kafka-password-file", c.password)
	return scram.Auth{User: c.User, Pass: password}, err
}

func read(flag string, secret func() (string, error)) (string, error) {
	text, err := secret()
	if err != nil {
		return "", fmt.Errorf("%s: %w", flag, err)
	}
	return text, nil
}

// awsCredentials are found as every AWS tool finds them: environment, profile, the role of
// a container, of a pod or of the machine. The SDK renews what runs out.
type awsCredentials struct {
	mu    sync.Mutex
	chain aws.CredentialsProvider
}

func (a *awsCredentials) take(ctx context.Context) (mskiam.Auth, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.chain == nil {
		found, err := config.LoadDefaultConfig(ctx)
		if err != nil {
			return mskiam.Auth{}, fmt.Errorf("AWS configuration: %w", err)
		}
		a.chain = found.Credentials
	}
	v, err := a.chain.Retrieve(ctx)
	if err != nil {
		return mskiam.Auth{}, fmt.Errorf("AWS credentials: %w", err)
	}
	return mskiam.Auth{AccessKey: v.AccessKeyID, SecretKey: v.SecretAccessKey, SessionToken: v.SessionToken, UserAgent: "sluice"}, nil
}
