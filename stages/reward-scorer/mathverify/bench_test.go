package mathverify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"sort"
	"strings"
	"syscall"
	"testing"
	"time"
)

// benchPairs are typical pairs by kind.
func benchPairs() map[string][][2]string {
	return map[string][][2]string{
		"integer":    {{"42", `\boxed{42}`}, {"2079", "2079"}, {"-17", `\boxed{17}`}, {"123456789", `\boxed{123456789}`}},
		"decimal":    {{"3.25", `\boxed{3.250}`}, {"0.1112", `\boxed{0.1113}`}, {"1,234.5", `\boxed{1234.5}`}},
		"fraction":   {{`\frac{3}{4}`, `\boxed{\dfrac{6}{8}}`}, {`\frac{171}{13}`, `\boxed{13\frac{2}{13}}`}, {`\frac12`, `\boxed{0.5}`}, {`\frac{2}{3}`, `\boxed{\frac{3}{2}}`}},
		"radical":    {{`2\sqrt{3}`, `\boxed{\sqrt{12}}`}, {`\frac{1}{\sqrt2}`, `\boxed{\frac{\sqrt2}{2}}`}, {`\sqrt{3+2\sqrt2}`, `\boxed{1+\sqrt2}`}, {`\sqrt2+\sqrt3`, `\boxed{\sqrt5}`}},
		"polynomial": {{`(x+1)^2`, `\boxed{x^2+2x+1}`}, {`3(5x-9)(x+2)`, `\boxed{15x^2+3x-54}`}, {`(x+y)^{10}`, `\boxed{(y+x)^{10}+1}`}, {`\frac{x^2-1}{x-1}`, `\boxed{x+1}`}},
		"trig":       {{`\sin\frac{\pi}{6}`, `\boxed{\frac12}`}, {`\sin 2x`, `\boxed{2\sin x\cos x}`}, {`\cos 2x`, `\boxed{2\cos^2 x}`}},
		"complex":    {{`24+12i`, `\boxed{(3-i)(6+6i)}`}, {`5`, `\boxed{|3-4i|}`}, {`-1`, `\boxed{e^{i\pi}}`}},
		"set":        {{`\{1,2,3\}`, `\boxed{\{3,2,1\}}`}, {`1, -2, \frac12`, `\boxed{0.5, 1, -2}`}, {`1,2,3`, `\boxed{1,2}`}},
		"tuple":      {{`(3,-4)`, `\boxed{\left(3,-4\right)}`}, {`(\frac12,\sqrt8)`, `\boxed{(0.5,2\sqrt2)}`}},
		"interval":   {{`(-\infty,5)\cup(5,\infty)`, `\boxed{\mathbb{R}\setminus\{5\}}`}, {`[-2,7]`, `\boxed{-2\le x\le 7}`}, {`(8,12]`, `\boxed{[8,12]}`}},
		"equation":   {{`y=2x+3`, `\boxed{2x-y+3=0}`}, {`x^2+y^2=13`, `\boxed{x^{2}+y^{2}=13}`}, {`x=5`, `\boxed{5}`}},
		"matrix":     {{`\begin{pmatrix}1&2\\3&4\end{pmatrix}`, `\boxed{\begin{bmatrix}1&2\\3&4\end{bmatrix}}`}, {`\begin{pmatrix}1\\2\end{pmatrix}`, `\boxed{\begin{pmatrix}1\\3\end{pmatrix}}`}},
		"text":       {{`\text{Evelyn}`, `\boxed{Evelyn}`}, {`\text{(B)}`, `\boxed{B}`}, {`90^\circ`, `\boxed{90\text{ degrees}}`}},
		"hostile":    {{`9^{9^{9^9}}`, `\boxed{9^{9^{9^8}}}`}, {`10^{10}!`, `\boxed{7}`}, {`\frac{1}{2004!}`, `\boxed{\frac{1}{2006!}}`}},
	}
}

func BenchmarkCompare(b *testing.B) {
	pairs := benchPairs()
	kinds := make([]string, 0, len(pairs))
	for k := range pairs {
		kinds = append(kinds, k)
	}
	sort.Strings(kinds)
	for _, kind := range kinds {
		b.Run(kind, func(b *testing.B) {
			b.ReportAllocs()
			took := make([]time.Duration, 0, 1<<16)
			i := 0
			for b.Loop() {
				p := pairs[kind][i%len(pairs[kind])]
				start := time.Now()
				Compare(p[0], p[1], Options{})
				if len(took) < cap(took) {
					took = append(took, time.Since(start))
				}
				i++
			}
			sort.Slice(took, func(i, j int) bool { return took[i] < took[j] })
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1e3, "p99-µs")
		})
	}
}

// distinctPairs are the same kinds with other numbers in each pair: answers in
// training are distinct, and Math-Verify remembers what it has seen.
func distinctPairs(from, to int) map[string][][2]string {
	forms := map[string]func(i int) [2]string{
		"integer": func(i int) [2]string { return [2]string{fmt.Sprint(7919 * i), fmt.Sprintf(`\boxed{%d}`, 7919*i+i%2)} },
		"decimal": func(i int) [2]string {
			return [2]string{fmt.Sprintf("%d.%d5", i, i), fmt.Sprintf(`\boxed{%d.%d50}`, i, i+i%2)}
		},
		"fraction": func(i int) [2]string {
			return [2]string{fmt.Sprintf(`\frac{%d}{%d}`, i, i+4), fmt.Sprintf(`\boxed{\dfrac{%d}{%d}}`, 2*i, 2*i+8+i%2)}
		},
		"radical": func(i int) [2]string {
			return [2]string{fmt.Sprintf(`%d\sqrt{3}+%d`, i, i+1), fmt.Sprintf(`\boxed{%d+\sqrt{%d}}`, i+1, 3*i*i+i%2)}
		},
		"polynomial": func(i int) [2]string {
			return [2]string{fmt.Sprintf(`(x+%d)(2x-3)`, i), fmt.Sprintf(`\boxed{2x^2+%dx-%d}`, 2*i-3+i%2, 3*i)}
		},
		"trig": func(i int) [2]string {
			return [2]string{fmt.Sprintf(`%d\sin 2x`, i), fmt.Sprintf(`\boxed{%d\sin x\cos x}`, 2*i+i%2)}
		},
		"complex": func(i int) [2]string {
			return [2]string{fmt.Sprintf(`%d+%di`, 3*i+4, 4*i-3), fmt.Sprintf(`\boxed{(3+4i)(%d-i)}`, i+i%2)}
		},
		"set": func(i int) [2]string {
			return [2]string{fmt.Sprintf(`\{%d,%d,\frac{%d}{2}\}`, i, i+3, i), fmt.Sprintf(`\boxed{\{\frac{%d}{2},%d,%d\}}`, i, i+3, i+i%2)}
		},
		"tuple": func(i int) [2]string {
			return [2]string{fmt.Sprintf(`(\frac{%d}{2},\sqrt{8},-%d)`, i, i), fmt.Sprintf(`\boxed{\left(%d.%d,2\sqrt2,-%d\right)}`, i/2, i%2*5, i+i%2)}
		},
		"interval": func(i int) [2]string {
			return [2]string{fmt.Sprintf(`[-%d,%d)\cup(%d,\infty)`, i, i, i+5), fmt.Sprintf(`\boxed{-%d\le x<%d \text{ or } x>%d}`, i, i, i+5+i%2)}
		},
		"equation": func(i int) [2]string {
			return [2]string{fmt.Sprintf(`y=%dx+3`, i), fmt.Sprintf(`\boxed{%dx-y+%d=0}`, i, 3+i%2)}
		},
		"matrix": func(i int) [2]string {
			return [2]string{fmt.Sprintf(`\begin{pmatrix}%d&2\\3&\frac{%d}{7}\end{pmatrix}`, i, i), fmt.Sprintf(`\boxed{\begin{bmatrix}%d&2\\3&\frac{%d}{7}\end{bmatrix}}`, i, i+i%2)}
		},
		"text": func(i int) [2]string {
			return [2]string{fmt.Sprintf(`%d^\circ`, i), fmt.Sprintf(`\boxed{%d\text{ degrees}}`, i+i%2)}
		},
	}
	sets := map[string][][2]string{}
	for kind, form := range forms {
		for i := from; i < to; i++ {
			sets[kind] = append(sets[kind], form(i))
		}
	}
	return sets
}

// The other side of TestAgainstMathVerify: it reads the pairs as JSON and prints
// the seconds that each took. It warms up on other pairs, works for a second or
// to the end of the pairs, each of which it meets once, since it remembers what it
// has seen, and gets references as its users give them, between dollars.
const mathVerifyScript = `
import json, sys, time
from math_verify import parse, verify
def one(gold, pred):
    try:
        verify(parse("$" + gold + "$", parsing_timeout=None), parse(pred, parsing_timeout=None), timeout_seconds=None)
    except Exception:
        pass
out = {}
warm, sets = json.load(sys.stdin)
for kind, pairs in sets.items():
    for gold, pred in warm.get(kind, pairs[:10]):
        one(gold, pred)
    took, begun, used = [], time.perf_counter(), time.process_time()
    for gold, pred in pairs:
        start = time.perf_counter()
        one(gold, pred)
        took.append(time.perf_counter() - start)
        if time.perf_counter() - begun > 1:
            break
    out[kind] = {"took": took, "mean": (time.process_time() - used) / len(took)}
json.dump(out, sys.stdout)
`

// TestAgainstMathVerify times both on the same pairs, one after the other, each
// warmed and for a second, and prints the mean time of a comparison (of the
// processor, which other processes' load does not lengthen), the median (of the
// clock) and their ratios. Set MATH_VERIFY_PYTHON to a Python that has
// math-verify installed. BENCH_CASES may name a .jsonl file of rows with gold and
// pred to time instead of the built-in pairs.
func TestAgainstMathVerify(t *testing.T) {
	python := os.Getenv("MATH_VERIFY_PYTHON")
	if python == "" {
		t.Skip("MATH_VERIFY_PYTHON is not set: no Python with math-verify to compare with")
	}
	warm, sets := distinctPairs(1001, 1041), distinctPairs(11, 411)
	if file := os.Getenv("BENCH_CASES"); file != "" {
		sets = map[string][][2]string{file: casePairs(t, file)}
	}
	in, err := json.Marshal([]any{warm, sets})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "-c", mathVerifyScript)
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s with math-verify: %v", python, err)
	}
	var theirs map[string]struct {
		Took []float64
		Mean float64
	}
	if err := json.Unmarshal(out, &theirs); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	kinds := make([]string, 0, len(sets))
	for k := range sets {
		kinds = append(kinds, k)
	}
	sort.Strings(kinds)
	fmt.Printf("%-12s %10s %10s %12s %12s %8s %8s\n", "kind", "mean µs", "median µs", "theirs: mean", "median", "ratio", "medians")
	for _, k := range kinds {
		for _, p := range warm[k] {
			Compare(p[0], p[1], Options{})
		}
		var took []float64
		used := processTime()
		for begun := time.Now(); time.Since(begun) < time.Second; {
			for _, p := range sets[k] {
				start := time.Now()
				Compare(p[0], p[1], Options{})
				took = append(took, time.Since(start).Seconds())
			}
		}
		mean, median := (processTime()-used).Seconds()/float64(len(took)), sortedMedian(took)
		theirMean, theirMedian := theirs[k].Mean, sortedMedian(theirs[k].Took)
		fmt.Printf("%-12s %10.2f %10.2f %12.0f %12.0f %8.0f %8.0f\n", k[strings.LastIndex(k, "/")+1:], 1e6*mean, 1e6*median, 1e6*theirMean, 1e6*theirMedian, theirMean/mean, theirMedian/median)
	}
}

// processTime is the time of all processors that this process used.
func processTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func sortedMedian(took []float64) float64 {
	if len(took) == 0 {
		return 0
	}
	sort.Float64s(took)
	return took[len(took)/2]
}

// TestDistinctPairsAreHalfEqual keeps the pairs of the benchmark honest: by turns
// equal and different.
func TestDistinctPairsAreHalfEqual(t *testing.T) {
	for kind, pairs := range distinctPairs(10, 30) {
		for i, p := range pairs {
			if v := Compare(p[0], p[1], Options{}); (v.Outcome == Equal) != (i%2 == 0) {
				t.Errorf("%s: %q against %q: %+v", kind, p[0], p[1], v)
			}
		}
	}
}

func casePairs(t *testing.T, file string) [][2]string {
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var pairs [][2]string
	for _, line := range bytes.Split(bytes.TrimSpace(content), []byte("\n")) {
		var r labelled
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		pairs = append(pairs, [2]string{r.Gold, r.Pred})
	}
	return pairs
}
