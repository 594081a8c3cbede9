package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestFlags(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, ""},
		{[]string{"--slots=8", "--attempts=1", "--lock=1s", "--sandboxd=http://127.0.0.1:9"}, ""},
		{[]string{"--sandboxd="}, "--sandboxd"},
		{[]string{"--slots=-1"}, "--slots"},
		{[]string{"--attempts=0"}, "--attempts"},
		{[]string{"--lock=10ms"}, "--lock"},
	} {
		var cfg config
		f := pflag.NewFlagSet(name, pflag.ContinueOnError)
		cfg.register(f)
		if err := f.Parse(c.args); err != nil {
			t.Fatal(err)
		}
		err := cfg.validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want one about %q", c.args, err, c.want)
		}
	}
}
