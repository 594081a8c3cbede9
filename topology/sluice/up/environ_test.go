package up

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVariablesThatGiveFlagsStayBehind(t *testing.T) {
	own := []string{
		"PATH=/bin", "SLUICE_HTTP_ADDR=127.0.0.1:9", "SLUICE_LATENCY=1s", "SLUICE_LISTEN=x", "HOME=/root", "ODD",
		"SLUICE_INFERENCE_API_KEY=k", "SLUICE_INFERENCE_API_KEY_FILE=/run/k", "SLUICE_CLICKHOUSE_PASSWORD_FILE=/run/p",
	}
	want := []string{
		"PATH=/bin", "HOME=/root", "ODD",
		"SLUICE_INFERENCE_API_KEY=k", "SLUICE_INFERENCE_API_KEY_FILE=/run/k", "SLUICE_CLICKHOUSE_PASSWORD_FILE=/run/p",
	}
	if diff := cmp.Diff(want, environ(own, true)); diff != "" {
		t.Errorf("environment of a process (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[:3], environ(own, false)); diff != "" {
		t.Errorf("environment of sandboxd (-want +got):\n%s", diff)
	}
}
