package process

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
)

const secretAnnotation = "sluice-secret"

// secretValue is a flag that holds the path of a file with a secret in it.
type secretValue struct {
	path string
	dst  *string
}

func (v *secretValue) String() string        { return v.path }
func (v *secretValue) Set(path string) error { v.path = path; return nil }
func (v *secretValue) Type() string          { return "file" }

// Secret registers --NAME-file, the path of a file whose first line is the secret,
// and the environment variable of NAME, which may hold the secret itself. There is
// no flag that takes the secret: command lines are visible to everybody on a host.
// The value is in *dst once flags are parsed, empty if neither was given.
func Secret(fs *pflag.FlagSet, dst *string, name, usage string) {
	fs.Var(&secretValue{dst: dst}, name+"-file", fmt.Sprintf("file that holds %s; or put it into %s", usage, EnvName(name)))
	// The annotation carries the variable's name to resolveSecrets and help.
	_ = fs.SetAnnotation(name+"-file", secretAnnotation, []string{EnvName(name)})
}

func (v *secretValue) read(fromEnv string) error {
	if v.path == "" {
		*v.dst = fromEnv
		return nil
	}
	b, err := os.ReadFile(v.path)
	if err != nil {
		return err
	}
	line, _, _ := strings.Cut(string(b), "\n")
	if line = strings.TrimRight(line, "\r"); line == "" {
		return fmt.Errorf("%s: first line is empty, want the secret there", v.path)
	}
	*v.dst = line
	return nil
}

func resolveSecrets(fs *pflag.FlagSet, environ func(string) (string, bool)) error {
	var errs []error
	fs.VisitAll(func(f *pflag.Flag) {
		v, ok := f.Value.(*secretValue)
		if !ok {
			return
		}
		fromEnv, _ := environ(f.Annotations[secretAnnotation][0])
		if err := v.read(fromEnv); err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", f.Name, err))
		}
	})
	return errors.Join(errs...)
}

// refuseSecretFlags keeps a program from taking a secret on its command line.
func refuseSecretFlags(fs *pflag.FlagSet) error {
	var err error
	fs.VisitAll(func(f *pflag.Flag) {
		for _, end := range []string{"password", "secret", "api-key", "access-token", "auth-token"} {
			if strings.HasSuffix(f.Name, end) {
				err = fmt.Errorf("flag --%s would take a secret on the command line: register it with process.Secret", f.Name)
			}
		}
	})
	return err
}
