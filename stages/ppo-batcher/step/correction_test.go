package step

import (
	"testing"

	"github.com/spf13/pflag"
)

func TestACorrectionIsReadAndWrittenAsItsFlag(t *testing.T) {
	for _, text := range []string{"none", "truncate:2", "mask:0.5:2", "sequence-truncate:1.5", "sequence-mask:0:4"} {
		r := DefaultRules
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		r.Register(f)
		if err := f.Parse([]string{"--correction", text}); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if got := f.Lookup("correction").Value.String(); got != text {
			t.Errorf("%s is read as %s", text, got)
		}
		if err := r.Validate(); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"", "truncate", "truncate:0", "truncate:-1", "truncate:2:3", "truncate:inf", "truncate:nan", "mask:2", "mask:1:2", "mask:0.5:1", "mask:-1:2", "mask:0.5:inf", "by-sequence", "None", "sequence-none"} {
		r := DefaultRules
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		r.Register(f)
		if err := f.Parse([]string{"--correction=" + text}); err == nil {
			t.Errorf("%q is taken as %s", text, f.Lookup("correction").Value)
		}
	}
}
