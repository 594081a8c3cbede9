package integration

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/api"
)

// stubSandboxd answers as sandboxd does, at once and without running anything: what is
// measured over it is the pipeline alone. It serves until the test ends.
func stubSandboxd(t testing.TB) (socket string, calls *atomic.Int64) {
	t.Helper()
	const slots = 16
	socket = filepath.Join(t.TempDir(), "stub.sock")
	calls = new(atomic.Int64)
	mux := http.NewServeMux()
	health := func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(api.Health{Status: "ok", Version: "stub", Slots: slots, Reservable: slots})
	}
	mux.HandleFunc("GET /healthz", health)
	mux.HandleFunc("GET /readyz", health)
	mux.HandleFunc("POST /v1/reserve", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"reservation":"%d","wait_ms":0}`+"\n", calls.Load())
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	mux.HandleFunc("POST /v1/run", func(w http.ResponseWriter, _ *http.Request) {
		n := calls.Add(1)
		out := []byte("42\n")
		json.NewEncoder(w).Encode(api.Result{
			Outcome: api.OK, Stdout: api.Stream{Kept: out, Total: int64(len(out))},
			Image: "stub", SandboxID: fmt.Sprint("stub-", n), Protections: api.Protections{Isolation: "none"},
		})
	})
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: mux}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	return socket, calls
}

// BenchmarkPipeline runs the whole loop, simpolicy at zero latency, over a stub in
// place of sandboxd, and reports trajectories and code calls a second through all
// stages, and the most memory each process took. One run is one measurement.
func BenchmarkPipeline(b *testing.B) {
	const benchSteps, benchProblems = 8, 32
	binary(b, "sluice")
	for range b.N {
		socket, calls := stubSandboxd(b)
		dir := filepath.Join(b.TempDir(), "run")
		u := startUp(b, dir, "--sandboxd-socket", socket, "--steps", fmt.Sprint(benchSteps),
			"--problems-per-step", fmt.Sprint(benchProblems), "--executor-slots", "8", "--drain", "3m", "--seed", "7")
		peak := map[string]int{}
		for running := true; running; {
			select {
			case <-u.done:
				running = false
			case <-time.After(500 * time.Millisecond):
				u.peakMemory(peak)
			}
		}
		u.finished(time.Second)
		var sum struct {
			Trajectories int     `json:"trajectories"`
			Seconds      float64 `json:"seconds"`
		}
		text, err := os.ReadFile(filepath.Join(dir, "summary.json"))
		if err == nil {
			err = json.Unmarshal(text, &sum)
		}
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(sum.Trajectories)/sum.Seconds, "trajectories/s")
		b.ReportMetric(float64(calls.Load())/sum.Seconds, "calls/s")
		for stage, kB := range peak {
			b.ReportMetric(float64(kB)/1024, stage+"-MB")
		}
	}
}

// peakMemory notes the most resident memory of each process so far, in kB.
func (u *up) peakMemory(peak map[string]int) {
	files, _ := filepath.Glob(filepath.Join(u.dir, "ready", "*.json"))
	for _, f := range files {
		stage := strings.TrimSuffix(filepath.Base(f), ".json")
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", u.pid(stage)))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(status)) {
			var kB int
			if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kB); n == 1 {
				peak[stage] = max(peak[stage], kB)
			}
		}
	}
}
