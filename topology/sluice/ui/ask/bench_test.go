package ask_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/sluice-rl/sluice/topology/sluice/ui/uitest"
)

// What the pages ask, over SLUICE_MANY trajectories in five runs (default: 40,000).
func BenchmarkPages(b *testing.B) {
	many := 40_000
	if s := os.Getenv("SLUICE_MANY"); s != "" {
		var err error
		if many, err = strconv.Atoi(s); err != nil {
			b.Fatal(err)
		}
	}
	rows := uitest.Start(b)
	rows.InsertMany(b, many)
	a := rows.Asker(b)
	run := []string{"run", "many-2"}
	with := func(more ...string) []string { return append(append([]string{}, run...), more...) }
	middle := fmt.Sprint(max(1, many/4000/2))
	first, err := a.Named(b.Context(), "trajectories", values(with("from", middle, "to", middle, "limit", "1")...))
	if err != nil {
		b.Fatal(err)
	}
	at := strings.Fields(column(first, "incarnation", "step", "slot", "sample_index", "copy")[0])
	group := with("incarnation", at[0], "step", at[1], "slot", at[2])
	one := append(append([]string{}, group...), "sample", at[3], "copy", at[4])
	for _, c := range []struct {
		name, question string
		values         []string
	}{
		{"runs", "runs", nil},
		{"run/steps", "run_steps", run}, {"run/trainer", "run_trainer", run}, {"run/eval", "run_eval", run}, {"run/work", "run_work", run},
		{"trajectories/first", "trajectories", run}, {"trajectories/facets", "facets", run},
		{"trajectories/behind", "trajectories", with("a_incarnation", at[0], "a_step", at[1], "a_slot", at[2], "a_sample", at[3], "a_copy", at[4])},
		{"trajectories/step", "trajectories", with("from", middle, "to", middle)},
		{"trajectories/exception", "trajectories", with("exception", "ValueError")},
		{"trajectories/question", "trajectories", with("question", "17")},
		{"trajectories/ended", "trajectories", with("end", "turn_budget", "correct", "1", "calls_from", "3")},
		{"trajectories/text-common", "trajectories", with("text", "the answer is")},
		{"trajectories/text-nowhere", "trajectories", with("text", "no such words")},
		{"trajectory", "trajectory", one}, {"trajectory/turns", "turns", one}, {"trajectory/siblings", "siblings", group}, {"trajectory/group", "group", group},
		{"groups", "groups", run}, {"questions", "questions", run}, {"errors", "errors", run}, {"dead-letters", "dead_letters", run},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := a.Named(b.Context(), c.question, values(c.values...)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
