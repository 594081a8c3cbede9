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
	take func(now string, read func() (string, error))
}

func (v *secretValue) String() string        { return v.path }
func (v *secretValue) Set(path string) error { v.path = path; return nil }
func (v *secretValue) Type() string          { return "file" }

// Secret registers --NAME-file, the path of a file whose first line is the secret,
// and the environment variable of NAME, which may hold the secret itself. There is
// no flag that takes the secret: command lines are visible to everybody on a host.
// The value is in *dst once flags are parsed, empty if neither was given.
func Secret(fs *pflag.FlagSet, dst *string, name, usage string) {
	secret(fs, func(now string, _ func() (string, error)) { *dst = now }, name, usage)
}

// RotatingSecret is Secret for what may change while the process lives: *dst reads the
// file anew at every call. It is nil if neither file nor variable was given.
func RotatingSecret(fs *pflag.FlagSet, dst *func() (string, error), name, usage string) {
	secret(fs, func(now string, read func() (string, error)) {
		if *dst = read; now == "" {
			*dst = nil
		}
	}, name, usage)
}

func secret(fs *pflag.FlagSet, take func(string, func() (string, error)), name, usage string) {
	fs.Var(&secretValue{take: take}, name+"-file", fmt.Sprintf("file that holds %s; or put it into %s", usage, EnvName(name)))
	// The annotation carries the variable's name to resolveSecrets and help.
	_ = fs.SetAnnotation(name+"-file", secretAnnotation, []string{EnvName(name)})
}

func (v *secretValue) resolve(fromEnv string) error {
	read := func() (string, error) { return fromEnv, nil }
	if v.path != "" {
		read = v.read
	}
	now, err := read()
	if err != nil {
		return err
	}
	v.take(now, read)
	return nil
}

func (v *secretValue) read() (string, error) {
	b, err := os.ReadFile(v.path)
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(b), "\n")
	if line = strings.TrimRight(line, "\r"); line == "" {
		return "", fmt.Errorf("%s: first line is empty, want the secret there", v.path)
	}
	return line, nil
}

func resolveSecrets(fs *pflag.FlagSet, environ func(string) (string, bool)) error {
	var errs []error
	fs.VisitAll(func(f *pflag.Flag) {
		v, ok := f.Value.(*secretValue)
		if !ok {
			return
		}
		fromEnv, _ := environ(f.Annotations[secretAnnotation][0])
		if err := v.resolve(fromEnv); err != nil {
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
