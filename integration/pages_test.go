package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// pagesOf is the address at which a process serves pages, as its ready file says.
func pagesOf(t testing.TB, p *process, ready string) string {
	t.Helper()
	var at string
	p.until("the pages are served", func() bool {
		content, _ := readyFile(ready)
		at, _ = content["pages"].(string)
		return at != ""
	})
	return at
}

// asked gets the rows of a question, by column.
func asked(t testing.TB, pages, question string) []map[string]any {
	t.Helper()
	client := &http.Client{Timeout: 30 * time.Second}
	resp, err := client.Get(pages + question)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var table struct {
		Columns []struct{ Name string }
		Rows    [][]any
		Error   string
	}
	if err := json.NewDecoder(resp.Body).Decode(&table); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d, %v, %s", question, resp.StatusCode, err, table.Error)
	}
	var rows []map[string]any
	for _, r := range table.Rows {
		row := map[string]any{}
		for i, c := range table.Columns {
			row[c.Name] = r[i]
		}
		rows = append(rows, row)
	}
	return rows
}

// checkLivePages: the first line says where the pages of a run are, and they say what flows.
func checkLivePages(t testing.TB, u *up) {
	t.Helper()
	at := pagesOf(t, u.process, filepath.Join(u.dir, "ready", "ui.json"))
	if first, _, _ := strings.Cut(u.out.String(), "\n"); !strings.HasSuffix(first, ", pages at "+at) {
		t.Errorf("the first line is %q, want it to end with the pages' address, %s", first, at)
	}
	resp, err := http.Get(at + "/api/live")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var now struct {
		Processes []struct{ Live bool }
		Work      []struct{ Stage string }
	}
	if err := json.NewDecoder(resp.Body).Decode(&now); err != nil || len(now.Work) == 0 || len(now.Processes) == 0 {
		t.Errorf("live: %+v, %v; want work and processes", now, err)
	}
}

// checkPagesOfTheDead opens the pages of a run that has ended, down to the digests of one
// trajectory in Kafka, and leaves no process.
func checkPagesOfTheDead(t testing.TB, dir, run string) {
	t.Helper()
	ready := filepath.Join(t.TempDir(), "pages.json")
	p := start(t, "sluice", "ui", "--dir", dir, "--listen", "127.0.0.1:0", "--ready-file", ready)
	at := pagesOf(t, p, ready)
	rows := asked(t, at, "/api/q/trajectories?limit=1&graded=1&run="+run)
	if len(rows) != 1 {
		t.Fatalf("%d trajectories of run %s, want 1", len(rows), run)
	}
	r := rows[0]
	one := asked(t, at, fmt.Sprintf("/api/q/trajectory?run=%s&incarnation=%v&step=%v&slot=%v&sample=%v&copy=%v", run, r["incarnation"], r["step"], r["slot"], r["sample_index"], r["copy"]))[0]
	resp, err := http.Get(fmt.Sprintf("%s/api/record?topic=%v&partition=%v&offset=%v", at, one["source_topic"], one["source_partition"], one["source_offset"]))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var record struct {
		Custody string
		Place   [6]string
	}
	if err := json.NewDecoder(resp.Body).Decode(&record); err != nil || record.Custody != "holds" || record.Place[0] != run || record.Place[5] != r["copy"] {
		t.Errorf("the record of %v: %+v, %v; want its chain to hold", r, record, err)
	}
	p.signal(syscall.SIGTERM)
	if got := p.status(patience); got != 0 {
		t.Errorf("status %d after SIGTERM, want 0; it said:\n%s", got, p.out)
	}
	if left := processesOf(dir + "/"); len(left) > 0 {
		t.Errorf("left running by the pages:\n%s", strings.Join(left, "\n"))
	}
}
