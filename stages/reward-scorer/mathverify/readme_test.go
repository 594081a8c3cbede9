package mathverify

import (
	"os"
	"strings"
	"testing"
)

// TestTheTableOfTheReadme compares the columns of our profiles with what they say.
func TestTheTableOfTheReadme(t *testing.T) {
	content, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, line := range strings.Split(string(content), "\n") {
		cells := strings.Split(strings.Trim(line, "|"), " | ")
		if len(cells) != 5 || !strings.Contains(cells[1], "` / `") {
			continue
		}
		rows++
		gold, pred, _ := strings.Cut(strings.Trim(cells[1], " `"), "` / `")
		for i, profile := range []Profile{Sound, Compat} {
			if v := CompareAnswer(gold, pred, Options{Profile: profile}); string(v.Outcome) != cells[2+i] {
				t.Errorf("%q against %q in %s: %s (%s), the table says %s", gold, pred, profile, v.Outcome, v.Reason, cells[2+i])
			}
		}
	}
	if rows < 15 {
		t.Errorf("the table has %d rows: is it still read?", rows)
	}
}
