package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/api"
	"github.com/sluice-rl/sluice/sandboxd/internal/host/cgroup"
	"github.com/sluice-rl/sluice/sandboxd/internal/host/spawn"
	"github.com/sluice-rl/sluice/sandboxd/internal/sandbox"
	"github.com/sluice-rl/sluice/sandboxd/internal/sandbox/plain"
)

// What a daemon claims it has tried, with control groups and without.
func TestProtectionsAreTried(t *testing.T) {
	for name, without := range map[string]bool{"control groups": false, "no control groups": true} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig(t, "--runsc="+needGVisor(t))
			cfg.noCgroups, cfg.Pool = without, nil
			d, err := New(t.Context(), cfg, testLog(t))
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			if err := d.Prepare(t.Context()); err != nil {
				t.Fatal(err)
			}
			p := call(t, d, api.Request{Code: "print(1)"}).Protections
			if !p.Tested || p.Memory == "" || p.Processes == "" || p.Disk == "" || p.Network == "" {
				t.Errorf("claims are %+v", p)
			}
			t.Logf("cgroups %s: memory %q, cpu %q, missing %q", d.groups.Version(), p.Memory, p.CPU, p.Missing)
		})
	}
}

// defenceless makes plain processes pass for sandboxes.
type defenceless struct{ *plain.Maker }

func (d defenceless) BootLimited(ctx context.Context, _ int64) (sandbox.Sandbox, error) {
	return d.Boot(ctx)
}

// Where nothing protects, the program that tries it says so.
func TestTheSelfTestFindsWhatIsMissing(t *testing.T) {
	spawner := spawn.New()
	defer spawner.Close()
	maker := defenceless{plain.New(plain.Config{
		Python: "/usr/bin/python3", Dir: t.TempDir(), Prefix: "sbx-", Groups: cgroup.Disabled("test"),
		KeepOutput: 64 << 10, OutputLimit: 1 << 20, StartTimeout: time.Minute,
	}, spawner)}
	d := &Daemon{log: testLog(t)}
	r, err := d.try(t.Context(), maker, 0, fmt.Sprintf(selfTest, 8, 4096, 4096))
	if err != nil {
		t.Fatal(err)
	}
	var held map[string]bool
	if err := json.Unmarshal(r.Stdout.Kept, &held); err != nil {
		t.Fatalf("%s: %v %s", r.Outcome, err, r.Stderr.Text())
	}
	if held["processes"] || held["disk"] {
		t.Errorf("a plain process is said to be held by %v", held)
	}
}
