package integration

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-rl/sluice/topology"
)

// intakes are the runner's functions that take records in, by the intake that the
// topology calls them.
var intakes = map[string]topology.Intake{
	"RunClassic": topology.IntakeClassic, "RunShare": topology.IntakeShare, "RunKeyed": topology.IntakeKeyed, "RunRanges": topology.IntakeRanges,
}

// program is what the source of a stage says of its topics.
type program struct {
	writes  map[string]bool
	intakes map[topology.Intake]bool
	// requeues: what it reads it may write anew.
	requeues bool
	// broadcast: it follows topics whole, whose unreadable records the feeder gives up.
	broadcast bool
}

// readProgram reads the files of a stage's main package.
func readProgram(t *testing.T, stage string) program {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(checkout(t), "stages", stage, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var parsed []*ast.File
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, file)
	}
	p := program{writes: map[string]bool{}, intakes: map[topology.Intake]bool{}}
	constants := map[string]string{"topology.StatusTopic": topology.StatusTopic}
	each := func(visit func(ast.Node) bool) {
		for _, file := range parsed {
			ast.Inspect(file, visit)
		}
	}
	each(func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			for i, name := range spec.Names {
				if i < len(spec.Values) {
					if lit, ok := spec.Values[i].(*ast.BasicLit); ok && lit.Kind == token.STRING {
						constants[name.Name], _ = strconv.Unquote(lit.Value)
					}
				}
			}
		}
		return true
	})
	each(func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr: // Topic: of a runner.Output
			if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Topic" {
				if name := text(n.Value, constants); name != "" {
					p.writes[name] = true
				}
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok {
				if intake := intakes[f.Sel.Name]; intake != "" {
					p.intakes[intake] = true
				}
				p.broadcast = p.broadcast || f.Sel.Name == "RunBroadcast"
				p.requeues = p.requeues || f.Sel.Name == "Requeue"
			}
		}
		return true
	})
	return p
}

// text is the string that an expression stands for, "" if it is not plain.
func text(e ast.Expr, constants map[string]string) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, _ := strconv.Unquote(e.Value)
		return s
	case *ast.Ident:
		return constants[e.Name]
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok {
			return constants[x.Name+"."+e.Sel.Name]
		}
	}
	return ""
}

// What topology.yaml says that a stage writes and how it takes records in is what its
// source does.
func TestTheTopologyAgreesWithTheStages(t *testing.T) {
	top, err := topology.Default()
	if err != nil {
		t.Fatal(err)
	}
	for name, stage := range top.Stages {
		t.Run(name, func(t *testing.T) {
			p := readProgram(t, name)
			p.writes[topology.StatusTopic] = true // every stage's process does
			if len(p.intakes) > 0 || p.broadcast {
				p.writes["dead-letters"] = true // whatever cannot be read goes there
			}
			for _, topic := range stage.Reads {
				p.writes[topic] = p.writes[topic] || p.requeues
			}
			maps.DeleteFunc(p.writes, func(_ string, does bool) bool { return !does })
			if log := top.Changelog(name); p.intakes["keyed"] && log != "" {
				p.writes[log] = true
			}
			want := slices.Sorted(slices.Values(stage.Writes))
			if diff := cmp.Diff(want, slices.Sorted(maps.Keys(p.writes))); diff != "" {
				t.Errorf("writes (-topology.yaml +source):\n%s", diff)
			}
			if stage.Intake != "" && !p.intakes[stage.Intake] || stage.Intake == "" && len(p.intakes) > 0 {
				t.Errorf("intake: topology.yaml says %q, the source has %v", stage.Intake, slices.Sorted(maps.Keys(p.intakes)))
			}
		})
	}
}

// A newcomer who knows one stage knows where to look in the next.
func TestStagesHaveTheSameFiles(t *testing.T) {
	top, err := topology.Default()
	if err != nil {
		t.Fatal(err)
	}
	for name, stage := range top.Stages {
		has := func(file string) bool {
			_, err := os.Stat(filepath.Join(checkout(t), "stages", name, file))
			return err == nil
		}
		for _, file := range []string{"doc.go", "main.go", "config.go", "stage.go"} {
			if !has(file) {
				t.Errorf("%s lacks %s", name, file)
			}
		}
		switch stage.Intake {
		case "":
		case "keyed":
			if !has("machine.go") || !has("metrics.go") {
				t.Errorf("%s lacks machine.go or metrics.go", name)
			}
		default:
			if !has("handler.go") {
				t.Errorf("%s lacks handler.go", name)
			}
		}
	}
}
