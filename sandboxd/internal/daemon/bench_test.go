package daemon

import (
	"testing"

	"github.com/sluice-rl/sluice/sandboxd/api"
	"github.com/sluice-rl/sluice/sandboxd/internal/sandbox/image"
)

// benchPrograms are the three programs of the README's table.
var benchPrograms = map[string]string{
	image.Bare:  "print(6*7)",
	image.Numpy: "import numpy as np\nprint(np.arange(10).sum())",
	image.Sympy: "import sympy\nx = sympy.symbols('x')\nprint(sympy.integrate(x*sympy.exp(x), x))",
}

// One call on a sandbox that stands ready; the pool refills in between, untimed.
// cpu-ms/op is what one whole single-use cycle costs the machine: restoring,
// running, killing.
func BenchmarkPoolHit(b *testing.B) {
	for _, img := range image.Standard() {
		b.Run(img.Name, func(b *testing.B) {
			d := startDaemon(b, "--pool=bare=0,"+img.Name+"=2")
			d.settle(b)
			begin := d.groups.TotalCPU()
			var wall float64
			n := 0
			for b.Loop() {
				b.StopTimer()
				d.settle(b)
				b.StartTimer()
				r := call(b, d, api.Request{Code: benchPrograms[img.Name], Image: img.Name})
				if r.Outcome != api.OK || !r.Warm {
					b.Fatalf("%s, warm %v: %s", r.Outcome, r.Warm, r.Message)
				}
				wall += r.WallMS
				n++
			}
			b.StopTimer()
			d.settle(b)
			b.ReportMetric(wall/float64(n), "program-ms/op")
			b.ReportMetric(float64((d.groups.TotalCPU()-begin).Microseconds())/1000/float64(n), "cpu-ms/op")
		})
	}
}

// One call on a sandbox booted for it.
func BenchmarkCold(b *testing.B) {
	for _, img := range image.Standard() {
		b.Run(img.Name, func(b *testing.B) {
			d := startDaemon(b)
			begin := d.groups.TotalCPU()
			n := 0
			for b.Loop() {
				if r := call(b, d, api.Request{Code: benchPrograms[img.Name], Cold: true}); r.Outcome != api.OK {
					b.Fatalf("%s: %s", r.Outcome, r.Message)
				}
				n++
			}
			b.ReportMetric(float64((d.groups.TotalCPU()-begin).Microseconds())/1000/float64(n), "cpu-ms/op")
		})
	}
}
