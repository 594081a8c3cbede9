package mathverify

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
)

// TestCases scores the package against files of labelled pairs. It is a tool
// for developers: set REWARD_CASES to a folder of .jsonl files whose rows have
// gold, pred, expected (true, false or null) and kind; REWARD_CASES_ONLY picks
// files, REWARD_CASES_SHOW prints disagreements, REWARD_CASES_PROFILE sets the
// profile.
func TestCases(t *testing.T) {
	dir := os.Getenv("REWARD_CASES")
	if dir == "" {
		t.Skip("REWARD_CASES is not set: no folder of labelled pairs to score")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no .jsonl files in %s (%v)", dir, err)
	}
	for _, file := range files {
		if only := os.Getenv("REWARD_CASES_ONLY"); only == "" || strings.Contains(file, only) {
			scoreFile(t, file)
		}
	}
}

type labelled struct {
	ID, Gold, Pred, Kind, Family, Policy, Note string
	Expected                                   *bool
	Hard                                       bool
	Config                                     struct {
		FloatRounding int          `json:"float_rounding"`
		SetRelation   bool         `json:"allow_set_relation_comp"`
		Gold          []caseTarget `json:"gold_targets"`
		Pred          []caseTarget `json:"pred_targets"`
	}
}

// caseTarget is where a grader was told to look for an answer, in Math-Verify's words.
type caseTarget struct {
	Type     string
	Priority int `json:"boxed_match_priority"`
}

// targetsOf says the same in ours. Where plain expressions and LaTeX are both looked
// for, all signs are.
func targetsOf(list []caseTarget) Targets {
	var t Targets
	for _, one := range list {
		switch one.Type {
		case "latex":
			t |= Box | Formula | Said
			if one.Priority < 0 {
				t &^= Box
			}
		case "expr":
			t |= Said | Tag | Whole
		case "string":
			t |= Choice | Said | Whole
		default:
			return 0
		}
	}
	if t&(Formula|Whole) == Formula|Whole {
		return 0
	}
	return t
}

// threadTime is the CPU time of this thread, which other processes' load does
// not lengthen.
func threadTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func scoreFile(t *testing.T, file string) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	show := os.Getenv("REWARD_CASES_SHOW") != ""
	type tally struct{ right, all int }
	kinds := map[string]*tally{}
	var total, free, hard tally
	wrongEqual, slow, undecided := 0, 0, 0
	var worst, worstCPU time.Duration
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var r labelled
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		gold, pred := Targets(0), Targets(0)
		if os.Getenv("REWARD_CASES_PROFILE") == string(Compat) { // the conventions of the grader that the rows are from
			gold, pred = targetsOf(r.Config.Gold), targetsOf(r.Config.Pred)
		}
		o := Options{Gold: gold, Pred: pred, Profile: Profile(os.Getenv("REWARD_CASES_PROFILE")), Decimals: r.Config.FloatRounding, SetAgainstInequality: r.Config.SetRelation}
		start, used := time.Now(), threadTime()
		v := Compare(r.Gold, r.Pred, o)
		took := time.Since(start)
		worst, worstCPU = max(worst, took), max(worstCPU, threadTime()-used)
		if took > 50*time.Millisecond {
			slow++
			t.Logf("slow %v: %s", took, r.ID)
		}
		if v.Outcome == Undecided {
			undecided++
		}
		if r.Expected == nil {
			continue
		}
		ok := *r.Expected == (v.Outcome == Equal)
		count := func(c *tally) {
			c.all++
			if ok {
				c.right++
			}
		}
		count(&total)
		if r.Policy == "" {
			count(&free)
		}
		if r.Hard {
			count(&hard)
			if !ok && v.Outcome == Equal {
				wrongEqual++
			}
		}
		k := kinds[r.Kind]
		if k == nil {
			k = &tally{}
			kinds[r.Kind] = k
		}
		count(k)
		if !ok && show {
			t.Logf("%s %s/%s %s want %v got %s by %s: %s\n   gold %q\n   pred %q\n   read %q | %q", r.ID, r.Family, r.Kind, r.Policy, *r.Expected, v.Outcome, v.Method, v.Reason,
				expr.ClipText(r.Gold, 160), r.Pred[max(0, len(r.Pred)-160):], v.GoldRead, v.PredRead)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	names := make([]string, 0, len(kinds))
	for k := range kinds {
		names = append(names, k)
	}
	sort.Strings(names)
	var b strings.Builder
	for _, k := range names {
		fmt.Fprintf(&b, " %s %d/%d", k, kinds[k].right, kinds[k].all)
	}
	t.Logf("%-30s %d/%d (without policy %d/%d = %.2f%%, hard %d/%d with %d wrong equals), undecided %d, over 50 ms %d, worst %v, %v of CPU;%s", filepath.Base(file),
		total.right, total.all, free.right, free.all, 100*float64(free.right)/float64(max(1, free.all)), hard.right, hard.all, wrongEqual, undecided, slow, worst, worstCPU, b.String())
}
