package up

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-rl/sluice/topology/process"
)

// defaults are the options as the flags give them.
func defaults(t *testing.T, args ...string) Options {
	t.Helper()
	var o Options
	f := &process.Flags{}
	o.Register(f)
	if err := f.Parse(args...); err != nil {
		t.Fatal(err)
	}
	return o
}

func openRun(t *testing.T, path string, o Options) (run, bool, error) {
	t.Helper()
	d, err := openDirectory(path)
	if err != nil {
		return run{}, false, err
	}
	defer d.Close()
	return d.open(o)
}

func finish(t *testing.T, path string, r run) {
	t.Helper()
	r.Finished = true
	save(t, path, r)
}

// ran has a run be at work for a while.
func ran(t *testing.T, path string, r run) {
	t.Helper()
	r.Seconds = 3
	save(t, path, r)
}

func save(t *testing.T, path string, r run) {
	t.Helper()
	d, err := openDirectory(path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.save(r); err != nil {
		t.Fatal(err)
	}
}

// emptied empties the trash, after which nothing of the old run may be left.
func emptied(t *testing.T, path string) {
	t.Helper()
	d, err := openDirectory(path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.emptyTrash(); err != nil {
		t.Fatal(err)
	}
	if exists(d.file("trash")) {
		t.Error("the trash is still there")
	}
}

// leaveData puts a file where a broker would keep its data.
func leaveData(t *testing.T, path string) string {
	t.Helper()
	file := filepath.Join(path, "data", "broker", "log")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

func TestAnInterruptedRunGoesOn(t *testing.T) {
	path := t.TempDir()
	first, resumed, err := openRun(t, path, defaults(t))
	if err != nil || resumed {
		t.Fatalf("first start: resumed %v, %v", resumed, err)
	}
	data := leaveData(t, path)
	second, resumed, err := openRun(t, path, defaults(t, "--steps", "40"))
	if err != nil || !resumed || second.RunID != first.RunID {
		t.Errorf("second start: run %s, resumed %v, %v; want %s going on", second.RunID, resumed, err, first.RunID)
	}
	if second.Steps != 40 {
		t.Errorf("steps %d, want the 40 now asked for", second.Steps)
	}
	if !exists(data) {
		t.Error("the data of the interrupted run is gone")
	}
}

func TestAnInterruptedRunIsNotMixedWithOtherOptions(t *testing.T) {
	path := t.TempDir()
	r, _, err := openRun(t, path, defaults(t))
	if err != nil {
		t.Fatal(err)
	}
	ran(t, path, r)
	_, _, err = openRun(t, path, defaults(t, "--seed", "7", "--freeze"))
	if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "--seed 7 --freeze") || !strings.Contains(err.Error(), "--new") {
		t.Errorf("got %v, want ErrUsage that names both runs' options and --new", err)
	}
	data := leaveData(t, path)
	_, resumed, err := openRun(t, path, defaults(t, "--seed", "7", "--freeze", "--new"))
	emptied(t, path)
	if err != nil || resumed || exists(data) {
		t.Errorf("with --new: resumed %v, %v, data left %v; want a new run without the old data", resumed, err, exists(data))
	}
}

func TestARunThatNeverRanTiesNobodyToItsOptions(t *testing.T) {
	path := t.TempDir()
	first, _, err := openRun(t, path, defaults(t))
	if err != nil {
		t.Fatal(err)
	}
	second, resumed, err := openRun(t, path, defaults(t, "--seed", "7"))
	if err != nil || resumed || second.RunID == first.RunID {
		t.Errorf("run %s, resumed %v, %v; want another run than %s", second.RunID, resumed, err, first.RunID)
	}
}

func TestAFinishedRunIsFollowedByANewOne(t *testing.T) {
	for _, keep := range []bool{false, true} {
		path := t.TempDir()
		first, _, err := openRun(t, path, defaults(t))
		if err != nil {
			t.Fatal(err)
		}
		data := leaveData(t, path)
		finish(t, path, first)
		args := []string{}
		if keep {
			args = append(args, "--keep")
		}
		second, resumed, err := openRun(t, path, defaults(t, args...))
		emptied(t, path)
		if err != nil || resumed || second.RunID == first.RunID {
			t.Errorf("keep %v: run %s, resumed %v, %v; want another run than %s", keep, second.RunID, resumed, err, first.RunID)
		}
		if exists(data) != keep {
			t.Errorf("keep %v: data left %v", keep, exists(data))
		}
	}
}

func TestDirectoriesThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(t *testing.T, path string)
		says string
	}{
		{"of somebody else", func(t *testing.T, path string) {
			if err := os.WriteFile(filepath.Join(path, "thesis.txt"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}, "thesis.txt"},
		{"of a newer version", func(t *testing.T, path string) {
			finish(t, path, run{Format: 2})
		}, "format 2"},
		{"with a damaged run.json", func(t *testing.T, path string) {
			finish(t, path, run{Format: 1})
			if err := os.WriteFile(filepath.Join(path, "run.json"), []byte("{"), 0o644); err != nil {
				t.Fatal(err)
			}
		}, "damaged"},
		{"in use", func(t *testing.T, path string) {
			d, err := openDirectory(path)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(d.Close)
		}, "another `sluice up`"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := t.TempDir()
			c.make(t, path)
			_, _, err := openRun(t, path, defaults(t))
			if !errors.Is(err, ErrUnusable) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want ErrUnusable saying %q", err, c.says)
			}
		})
	}
}

func TestWrongOptionsNameTheFlag(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--steps", "0"}, "--steps is 0"},
		{[]string{"--problems", "dapo.parquet"}, "worked solution"},
		{[]string{"--group-size", "1"}, "--group-size is 1"},
		{[]string{"--kafka-port", "70000"}, "--kafka-port is 70000"},
		{[]string{"--kafka-port", "9092", "--brokers", "b:9092"}, "--brokers replaces"},
		{[]string{"--clickhouse-addr", "nowhere"}, `--clickhouse-addr "nowhere"`},
		{[]string{"--clickhouse-password-file", "x"}, "--clickhouse-password-file"},
		{[]string{"--clickhouse-database", "a b"}, "--clickhouse-database"},
		{[]string{"--inference-url", "gpu"}, "--inference-url"},
		{[]string{"--inference-url", "http://gpu:8000", "--freeze"}, "--freeze"},
		{[]string{"--problems", "/no/such/file"}, "--problems"},
		{[]string{"--executor-slots", "0"}, "--executor-slots is 0"},
		{[]string{"--drain", "0s"}, "--drain"},
		{[]string{"--dir", ""}, "--dir is empty"},
	} {
		err := defaults(t, c.args...).Validate()
		if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v, want ErrUsage saying %q", c.args, err, c.says)
		}
	}
	if err := defaults(t).Validate(); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
}

func TestPortsOfARunThatGoesOn(t *testing.T) {
	s := &system{run: run{Ports: map[string]int{broker: 1}}} // port 1 is free or not ours
	for _, c := range []struct {
		name, before string
		flag         int
		want         string
	}{
		{broker, "127.0.0.1:4711", 9092, "4711"},
		{broker, "", 9092, "9092"},
		{simpolicy, "", 0, "0"},
	} {
		if got := s.port(c.before, c.flag, c.name); got != c.want {
			t.Errorf("before %q, flag %d: port %s, want %s", c.before, c.flag, got, c.want)
		}
	}
}
