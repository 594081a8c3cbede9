package integration

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/sluice-rl/sluice"

// goPackage is what `go list` says of a package.
type goPackage struct {
	ImportPath  string
	Name        string
	Imports     []string
	TestImports []string
}

// packages lists every package of the module.
func packages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Name,Imports,TestImports", "./...")
	cmd.Dir = checkout(t)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []goPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// checkout is the folder that holds go.mod.
func checkout(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
	t.Fatal("no go.mod above this test")
	return ""
}

// wiring is the packages beside a stage that may know HTTP, files and the clock: what is not
// listed here and stands below a stage is a domain package, and pure.
var wiring = []string{
	"stages/sampler/inference",
	"stages/reward-scorer/reward/remote",
	"stages/reward-scorer/reward/rewardfile",
	"stages/reward-scorer/mathverify/cmd",
	"stages/replayer/perform",
}

func TestImportsPointOneWay(t *testing.T) {
	for _, p := range packages(t) {
		rel, _ := strings.CutPrefix(p.ImportPath, module+"/")
		for _, imported := range p.Imports {
			if why := refused(rel, imported); why != "" {
				t.Errorf("%s imports %s: %s", rel, imported, why)
			}
		}
	}
}

// refused says why a package may not import another one, "" if it may.
func refused(pkg, imported string) string {
	in := func(path string, folders ...string) bool {
		for _, f := range folders {
			if path == f || strings.HasPrefix(path, f+"/") {
				return true
			}
		}
		return false
	}
	theirs, ours := strings.CutPrefix(imported, module+"/")
	domain := isDomain(pkg)
	if !ours {
		if domain && in(imported, "github.com/twmb/franz-go", "net/http", "github.com/ClickHouse", "github.com/prometheus") {
			return "a domain package is pure"
		}
		return ""
	}
	switch {
	case in(pkg, "schemas") && !in(theirs, "schemas"):
		return "schemas import nothing of the pipeline"
	case pkg == "topology":
		return "the list of topics is a leaf"
	case in(pkg, "sandboxd") && !in(theirs, "sandboxd", "topology/process"):
		return "sandboxd imports nothing of the pipeline, only the life of a process, which knows nothing of it"
	case in(pkg, "topology/process") && !in(theirs, "topology/process"):
		return "the life of a process knows nothing of the pipeline"
	case in(pkg, "topology/apply") && theirs != "topology":
		return "what a cluster is to be knows the list of topics and nothing else"
	case in(pkg, "topology/cluster") && theirs != "topology" && !in(theirs, "topology/cluster", "topology/process"):
		return "how a cluster is named knows the list of topics and how a program takes settings"
	case domain && !in(theirs, "schemas") && !isDomain(theirs):
		return "a domain package imports only schemas and other domain packages"
	case in(theirs, "integration"):
		return "only tests use what integration starts"
	case isStage(theirs):
		return "a stage is a program, not a library"
	case in(pkg, "topology/sluice") && isDomain(theirs):
		return ""
	case in(pkg, "topology", "integration", "dashboards") && in(theirs, "stages"):
		return "it drives the stages as processes"
	case pkg == "stages/replayer" && theirs == "topology/apply":
		return "" // it makes topics of its own
	case in(pkg, "stages") && in(theirs, "topology") && theirs != "topology" && !in(theirs, "topology/process", "topology/cluster"):
		return "a stage knows the list of topics, its cluster and the life of a process, and nothing else of topology"
	case in(pkg, "stages") && in(theirs, "sandboxd/internal"):
		return "a stage speaks to sandboxd through its client"
	}
	return ""
}

// isDomain says whether a package stands below a stage and holds an idea, not wiring.
func isDomain(pkg string) bool {
	parts := strings.Split(pkg, "/")
	return len(parts) > 2 && parts[0] == "stages" && parts[1] != "internal" &&
		!slices.ContainsFunc(wiring, func(w string) bool { return pkg == w || strings.HasPrefix(pkg, w+"/") })
}

// isStage says whether a package is the program of a stage.
func isStage(pkg string) bool {
	parts := strings.Split(pkg, "/")
	return len(parts) == 2 && parts[0] == "stages" && parts[1] != "internal"
}

func TestTheImportRulesThemselves(t *testing.T) {
	for _, c := range []struct {
		pkg, imported string
		allowed       bool
	}{
		{"stages/advantage-grouper/advantage", module + "/schemas/sluicev1", true},
		{"stages/advantage-grouper/advantage", module + "/stages/internal/kafka", false},
		{"stages/advantage-grouper/advantage", module + "/topology/process", false},
		{"stages/advantage-grouper/advantage", "github.com/twmb/franz-go/pkg/kgo", false},
		{"stages/advantage-grouper/advantage", "net/http", false},
		{"stages/reward-scorer/scoring", module + "/stages/advantage-grouper/advantage", true},
		{"stages/sampler/inference", "net/http", true},
		{"stages/internal/kafka", "github.com/twmb/franz-go/pkg/kgo", true},
		{"stages/sampler", module + "/stages/internal/kafka", true},
		{"stages/sampler", module + "/stages/prompt-feeder", false},
		{"stages/sampler", module + "/sandboxd/client", true},
		{"stages/sampler", module + "/sandboxd/internal/pool", false},
		{"stages/sampler", module + "/topology", true},
		{"stages/sampler", module + "/topology/process", true},
		{"stages/sampler", module + "/topology/cluster", true},
		{"stages/sampler", module + "/topology/apply", false},
		{"stages/replayer", module + "/topology/apply", true},
		{"stages/replayer/perform", "github.com/twmb/franz-go/pkg/kgo", true},
		{"stages/replayer/replay", "github.com/twmb/franz-go/pkg/kgo", false},
		{"stages/sampler", module + "/topology/sluice/up", false},
		{"sandboxd/client", module + "/schemas/codec", false},
		{"sandboxd/internal/daemon", module + "/topology/process", true},
		{"sandboxd/internal/daemon", module + "/topology", false},
		{"topology/process", module + "/schemas/codec", false},
		{"topology/process", module + "/topology", false},
		{"topology/process", module + "/topology/process/lock", true},
		{"topology/cluster", module + "/schemas/codec", false},
		{"topology/cluster/access", module + "/topology/process", true},
		{"topology/apply", module + "/topology/process", false},
		{"topology/sluice/up", module + "/schemas/codec", true},
		{"topology/sluice/conform", module + "/stages/sampler/toolcall", true},
		{"topology/embedded/simpolicy", module + "/stages/sampler/toolcall", false},
		{"topology", module + "/schemas/codec", false},
		{"schemas/codec", module + "/topology", false},
		{"integration", module + "/stages/internal/kafka", false},
		{"stages/sampler", module + "/integration/apachekafka", false},
	} {
		if why := refused(c.pkg, c.imported); (why == "") != c.allowed {
			t.Errorf("%s importing %s: %q, want allowed %v", c.pkg, c.imported, why, c.allowed)
		}
	}
}

func TestTopLevelHoldsWhatItMayHold(t *testing.T) {
	allowed := strings.Fields("stages schemas sandboxd topology dashboards integration go.mod go.sum Makefile README.md CHANGELOG.md LICENSE bin")
	entries, err := os.ReadDir(checkout(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && !slices.Contains(allowed, e.Name()) {
			t.Errorf("%s stands at the top: it belongs into one of the folders", e.Name())
		}
	}
}

// The binaries that everything else speaks of.
var binaries = strings.Fields(`sluice sluice-broker sluice-clickhouse simpolicy sandboxd prompt-feeder sampler code-executor
	reward-scorer advantage-grouper ppo-batcher metrics-writer replayer mathverify`)

func TestEveryBinaryHasAMain(t *testing.T) {
	mains := map[string]bool{}
	for _, p := range packages(t) {
		if p.Name == "main" {
			mains[filepath.Base(p.ImportPath)] = true
		}
	}
	for _, name := range binaries {
		if !mains[name] {
			t.Errorf("no package main is called %s", name)
		}
	}
}

// mostLines is how long a file may be before it holds more than one idea.
const mostLines = 600

func TestFilesFitInTheHead(t *testing.T) {
	root := checkout(t)
	err := filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && strings.HasPrefix(e.Name(), ".") && path != root {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, ".pb.go") {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if n := strings.Count(string(b), "\n"); n > mostLines {
			rel, _ := filepath.Rel(root, path)
			t.Errorf("%s has %d lines: split it by idea", rel, n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	for _, p := range packages(t) {
		rel, _ := strings.CutPrefix(p.ImportPath, module+"/")
		files, err := filepath.Glob(filepath.Join(checkout(t), rel, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		said, tests := false, true
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			tests = tests && strings.HasSuffix(f, "_test.go")
			said = said || strings.Contains(string(b), "\n// Package "+p.Name+" ") || strings.HasPrefix(string(b), "// Package "+p.Name+" ") ||
				p.Name == "main" && strings.HasPrefix(string(b), "// Command ") || strings.Contains(string(b), "protoc-gen-go")
		}
		if !said && !tests {
			t.Errorf("package %s has no package comment", rel)
		}
	}
}
