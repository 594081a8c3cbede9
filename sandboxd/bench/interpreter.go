package main

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-rl/sluice/sandboxd/internal/gvisor/bundle"
	"github.com/sluice-rl/sluice/sandboxd/internal/sandbox/image"
)

// forks runs argv[2] argv[3] times, each time in a fork of an interpreter that
// has run argv[1], and prints the milliseconds of each.
const forks = `
import gc, os, sys, time
exec(compile(sys.argv[1], "<preparation>", "exec"), {})
gc.collect(); gc.freeze()
for _ in range(int(sys.argv[3])):
    r, w = os.pipe()
    if os.fork() == 0:
        out = os.dup(w)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        begin = time.perf_counter()
        exec(compile(sys.argv[2], "<program>", "exec"), {})
        sys.stdout.flush()
        os.write(out, b"%f" % ((time.perf_counter() - begin) * 1000))
        os._exit(0)
    os.close(w)
    print(os.read(r, 64).decode(), flush=True)
    os.close(r)
    os.wait()
`

// warmInterpreter measures the program without a sandbox and without a start.
func warmInterpreter(ctx context.Context, o options, p program) measurement {
	prepare := ""
	for _, img := range image.Standard() {
		if img.Name == p.image {
			prepare = img.Exercise
		}
	}
	cmd := exec.CommandContext(ctx, o.python, "-B", "-c", forks, prepare, p.code, strconv.Itoa(o.calls))
	cmd.Env = bundle.Environment()
	out, err := cmd.Output()
	if err != nil {
		return measurement{why: fmt.Sprintf("failed: %v", err)}
	}
	var s samples
	var total time.Duration
	for field := range strings.FieldsSeq(string(out)) {
		ms, err := strconv.ParseFloat(field, 64)
		took := time.Duration(ms * float64(time.Millisecond))
		s.add(took, err)
		total += took
	}
	return s.measurement(total)
}
