package ui_test

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/sluice-rl/sluice/topology/sluice/ui"
	"github.com/sluice-rl/sluice/topology/sluice/ui/browsertest"
	"github.com/sluice-rl/sluice/topology/sluice/ui/uitest"
)

// How long pages take in Chromium, over SLUICE_MANY trajectories in five runs (default:
// 40,000): first-ms until anything is painted, whole-ms until nothing is being waited for,
// both from the start of navigation; heap-MB of scripts then.
func BenchmarkPaint(b *testing.B) {
	many := 40_000
	if s := os.Getenv("SLUICE_MANY"); s != "" {
		var err error
		if many, err = strconv.Atoi(s); err != nil {
			b.Fatal(err)
		}
	}
	browser := browsertest.Start(b)
	rows := uitest.Start(b)
	rows.InsertMany(b, many)
	rows.InsertLong(b, 127)
	base := serve(b, ui.Config{Ask: rows.Asker(b)})
	for _, page := range [][2]string{
		{"runs", "/"}, {"run", "/run/many-2"}, {"trajectories", "/run/many-2/trajectories"}, {"groups", "/run/many-2/groups"},
		{"questions", "/run/many-2/questions"}, {"errors", "/run/many-2/errors"}, {"trajectory-127MB", "/run/long/t/0.1.0.0.1"},
	} {
		b.Run(page[0], func(b *testing.B) {
			p := browser.Open(b, base, browsertest.Screens[0])
			p.Go("/sql") // its scripts are there then, as for somebody who has been here
			var first, whole float64
			for b.Loop() {
				began := time.Now()
				p.GoSoon(page[1])
				whole += float64(time.Since(began).Microseconds()) / 1000
				first += browsertest.Eval[float64](p, `performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0`)
			}
			b.ReportMetric(first/float64(b.N), "first-ms")
			b.ReportMetric(whole/float64(b.N), "whole-ms")
			b.ReportMetric(browsertest.Eval[float64](p, `performance.memory.usedJSHeapSize / 1e6`), "heap-MB")
			b.ReportMetric(0, "ns/op")
			if wrong := p.Wrong(); len(wrong) > 0 {
				b.Errorf("%v", wrong)
			}
		})
	}
}
