package stage

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"
)

func TestACommandsFlagsComeFromLineEnvironmentAndFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("from file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name           string
		args           []string
		env            map[string]string
		addr, password string
		usage          bool
	}{
		{name: "defaults", addr: "x:1"},
		{name: "environment", env: map[string]string{"SLUICE_ADDR": "y:2", "SLUICE_PASSWORD": "from env"}, addr: "y:2", password: "from env"},
		{name: "line before environment", args: []string{"--addr", "z:3", "--password-file", file}, env: map[string]string{"SLUICE_ADDR": "y:2", "SLUICE_PASSWORD": "from env"}, addr: "z:3", password: "from file"},
		{name: "stray argument", args: []string{"up"}, addr: "x:1", usage: true},
		{name: "unknown flag", args: []string{"--adr", "z:3"}, addr: "x:1", usage: true},
	} {
		fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
		addr := fs.String("addr", "x:1", "address")
		var password string
		Secret(fs, &password, "password", "the password")
		err := ParseCommand(fs, c.args, func(k string) (string, bool) { v, ok := c.env[k]; return v, ok })
		if errors.Is(err, ErrUsage) != c.usage || (err != nil) != c.usage {
			t.Errorf("%s: %v", c.name, err)
		}
		if *addr != c.addr || password != c.password {
			t.Errorf("%s: addr %q, password %q; want %q, %q", c.name, *addr, password, c.addr, c.password)
		}
	}
}
