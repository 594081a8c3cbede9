package stage

import (
	"fmt"

	"github.com/spf13/pflag"
)

// ParseCommand fills the flags of a sub-command: the command line before the
// environment, and secrets from their files or the environment. Its error is a usage
// error, or wraps pflag.ErrHelp.
func ParseCommand(fs *pflag.FlagSet, args []string, environ func(string) (string, bool)) error {
	if err := refuseSecretFlags(fs); err != nil {
		return Usage(err)
	}
	if err := fs.Parse(args); err != nil {
		return Usage(err)
	}
	if rest := fs.Args(); len(rest) > 0 {
		return Usage(fmt.Errorf("argument %q is not understood: flags start with --", rest[0]))
	}
	if _, err := setFromEnv(fs, environ); err != nil {
		return Usage(err)
	}
	return Usage(resolveSecrets(fs, environ))
}
