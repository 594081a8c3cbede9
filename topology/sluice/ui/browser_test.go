package ui_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/sluice-rl/sluice/topology/sluice/ui"
	"github.com/sluice-rl/sluice/topology/sluice/ui/browsertest"
	"github.com/sluice-rl/sluice/topology/sluice/ui/uitest"
)

// pagesOf are the addresses of every page, for a run, two of its trajectories and a replay
// of it.
func pagesOf(run, place, beside, replay string) [][2]string {
	at := "/run/" + url.PathEscape(run)
	return [][2]string{
		{"runs", "/"},
		{"compare", "/compare?run=" + url.QueryEscape(run) + "&run=" + uitest.Run},
		{"run", at},
		{"trajectories", at + "/trajectories"},
		{"trajectory", at + "/t/" + place},
		{"beside", at + "/beside/" + place + "/" + beside},
		{"groups", at + "/groups"},
		{"questions", at + "/questions"},
		{"errors", at + "/errors"},
		{"run-dead-letters", at + "/dead-letters"},
		{"dead-letters", "/dead-letters"},
		{"replays", "/replays"},
		{"replay", "/replay/" + url.PathEscape(replay) + "/" + url.PathEscape(run)},
		{"sql", "/sql?q=" + url.QueryEscape("SELECT run_id, question_id, question, final_text FROM trajectories ORDER BY run_id DESC")},
	}
}

func click(selector string) chromedp.Action[chromedp.Void] { return chromedp.Click(selector) }

// well checks what must hold of every page.
func well(t *testing.T, p *browsertest.Page, name string) {
	t.Helper()
	if wrong := p.Wrong(); len(wrong) > 0 {
		t.Errorf("%s: %s", name, strings.Join(wrong, "\n"))
	}
	if ran := browsertest.Eval[bool](p, `"pwned" in window`); ran {
		t.Errorf("%s: a script of the rows ran", name)
	}
	if by, what := p.Wider(); by > 0 {
		t.Errorf("%s: %v pixels wider than the window: %s", name, by, what)
	}
	if said := browsertest.Eval[string](p, `[...document.querySelectorAll(".failure")].map((e) => e.innerText).join("\n")`); said != "" {
		t.Errorf("%s: %s", name, said)
	}
	// What has no name cannot be found by somebody who does not see it.
	if without := browsertest.Eval[string](p, `[...document.querySelectorAll("button, input, select, textarea, a")].filter((e) => !e.textContent.trim() && !e.getAttribute("aria-label") && !e.labels?.length && !e.querySelector("svg,img")).map((e) => e.outerHTML.slice(0, 120)).join("\n")`); without != "" {
		t.Errorf("%s: without a name:\n%s", name, without)
	}
}

func TestInChromium(t *testing.T) {
	browser := browsertest.Start(t)
	rows := uitest.Start(t)
	hostile := rows.InsertHostile(t, 5)
	base := serve(t, ui.Config{Ask: rows.Asker(t), Live: uitest.StartBroker(t, uitest.Scored()).Watch()})

	t.Run("every page, at every size", func(t *testing.T) {
		for _, screen := range browsertest.Screens {
			p := browser.Open(t, base, screen)
			for _, page := range pagesOf(uitest.Run, "0.2.0.0.201", "0.2.0.1.202", "strict") {
				p.Go(page[1])
				well(t, p, page[0]+" "+screen.Name)
			}
		}
	})
	t.Run("hostile rows", func(t *testing.T) {
		replay := strings.ToValidUTF8(uitest.Hostile, "\ufffd")
		for _, screen := range browsertest.Screens {
			p := browser.Open(t, base, screen)
			for _, page := range pagesOf(hostile, "0.1.0.0.900", "0.1.0.1.901", replay) {
				p.Go(page[1])
				if page[0] == "sql" {
					p.Do(click("button.primary"))
					p.Await(`document.querySelector("table[aria-label=Answer]") !== null`)
				}
				well(t, p, "hostile "+page[0]+" "+screen.Name)
			}
		}
		p := browser.Open(t, base, browsertest.Screens[0])
		p.Go(pagesOf(hostile, "0.1.0.0.900", "0.1.0.1.901", "x")[4][1])
		text := p.Text("main")
		for _, want := range []string{"<script>window.pwned = 1</script>", "⟨RLO⟩esrever⟨PDF⟩", "␛[31mred", "nul␀byte", "zero⟨ZWSP⟩width", "show more"} {
			if !strings.Contains(text, want) {
				t.Errorf("the page shows no %q", want)
			}
		}
		if n := browsertest.Eval[float64](p, `document.body.textContent.length`); n > 300_000 {
			t.Errorf("%v characters on the page before anybody asked for more", n)
		}
		p.Do(click("button.more"))
		p.Settle()
		well(t, p, "hostile, more of a text")
	})
	t.Run("by keyboard alone", func(t *testing.T) { testKeyboard(t, browser.Open(t, base, browsertest.Screens[0])) })
	t.Run("filters live in the address", func(t *testing.T) { testFilters(t, browser.Open(t, base, browsertest.Screens[0])) })
	t.Run("what a trajectory says", func(t *testing.T) { testTrajectory(t, browser.Open(t, base, browsertest.Screens[0])) })
	t.Run("SQL", func(t *testing.T) { testSQL(t, browser.Open(t, base, browsertest.Screens[0])) })
	t.Run("a run that learns nothing says why", func(t *testing.T) {
		rows.Insert(t, `INSERT INTO trajectories (run_id, step, slot, sample_index, copy, mode, question, end_reason, graded, reward, valid_format, event_time) SELECT 'mute', 1, 0, number, number + 1, 'train', 'q', 'answer', 1, -1, 0, now64(6) FROM numbers(4)`)
		rows.Insert(t, `INSERT INTO step_batches (run_id, step, batched_at, event_time) VALUES ('mute', 1, now64(6), now64(6))`)
		p := browser.Open(t, base, browsertest.Screens[0])
		p.Go("/run/mute")
		p.Await(`document.querySelectorAll(".alarm a").length === 4`)
		if said := p.Text(".alarm"); !strings.Contains(said, "No answer holds a readable box in step 1") {
			t.Errorf("it says %q", said)
		}
		well(t, p, "alarm")
	})
	t.Run("nobody there", func(t *testing.T) {
		base := serve(t, ui.Config{Ask: away(t)})
		p := browser.Open(t, base, browsertest.Screens[2])
		for _, page := range pagesOf("x", "0.1.0.0.1", "0.1.0.1.2", "y") {
			p.Go(page[1])
			if said := p.Text("body"); !strings.Contains(said, "ClickHouse") {
				t.Errorf("%s without ClickHouse says %q", page[0], said)
			}
			if by, what := p.Wider(); by > 0 {
				t.Errorf("%s without ClickHouse: %v pixels wider than the window: %s", page[0], by, what)
			}
		}
	})
}

func testKeyboard(t *testing.T, p *browsertest.Page) {
	p.Go("/")
	p.Press("j")
	p.Press(kb.Enter)
	p.Await(`location.pathname.startsWith("/run/")`)
	p.Go("/run/hand/trajectories")
	p.Press("j")
	p.Press("j")
	p.Press("k")
	p.Press("j")
	p.Press(kb.Enter)
	p.Await(`location.pathname === "/run/hand/t/0.2.0.1.202"`)
	p.Settle()
	p.Press("p")
	p.Await(`location.pathname === "/run/hand/t/0.2.0.0.201"`)
	p.Settle()
	p.Press("n")
	p.Await(`location.pathname === "/run/hand/t/0.2.0.1.202"`)
	p.Press("?")
	p.Await(`document.querySelector("[role=dialog]") !== null`)
	p.Press(kb.Escape)
	p.Await(`document.querySelector("[role=dialog]") === null`)
	// A chart: to its second step, and open that.
	p.Go("/run/hand")
	p.Await(`document.querySelector("figure.chart .plot canvas") !== null`)
	browsertest.Eval[bool](p, `(document.querySelector("figure.chart[tabindex]").focus(), true)`)
	p.Press(kb.Home)
	p.Press(kb.ArrowRight)
	p.Press(kb.Enter)
	p.Await(`location.pathname + location.search === "/run/hand/trajectories?from=2&to=2"`)
	p.Settle()
	p.Press("/")
	if at := browsertest.Eval[string](p, `document.activeElement.getAttribute("aria-label")`); at != "text" {
		t.Errorf("/ leads to %q, want the field of text", at)
	}
	well(t, p, "by keyboard")
}

func testFilters(t *testing.T, p *browsertest.Page) {
	p.Go("/run/hand/trajectories?exception=NameError")
	rows := `[...document.querySelectorAll("tbody tr td:first-child")].map((e) => e.innerText).join("; ")`
	if got := browsertest.Eval[string](p, rows); got != "2 / 1 / 0; 1 / 0 / 1" {
		t.Errorf("with NameError: %q", got)
	}
	browsertest.Eval[bool](p, `(document.querySelector("[aria-label='last step']").focus(), true)`)
	p.Press("1")
	p.Await(`location.search === "?exception=NameError&to=1"`)
	p.Await(rows + ` === "1 / 0 / 1"`)
	p.Do(click(".filters select")) // and leave it as it is
	p.Go(p.Path())
	if got := browsertest.Eval[string](p, rows); got != "1 / 0 / 1" {
		t.Errorf("the same address again: %q", got)
	}
	p.Go("/run/hand/trajectories?text=nowhere")
	if said := p.Text("main .empty"); !strings.Contains(said, "No trajectory is like this") {
		t.Errorf("with no row it says %q", said)
	}
}

func testTrajectory(t *testing.T, p *browsertest.Page) {
	p.Go("/run/hand/t/0.2.0.0.201")
	p.Await(`document.querySelector("aside").innerText.includes("chain holds")`)
	p.Await(`document.querySelector(".turn .fn") !== null`) // the program has its colours
	text := p.Text("main")
	for _, want := range []string{"step 2, slot 0, sample 0", "print(7)", "What is question q1?", "the same number", "outcome", "brief", "strict", "degenerate", "sampling", "sandbox wait", "scored/0@0"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
	p.Do(click(".turn header button.link"))
	p.Await(`document.querySelectorAll(".tokens span").length === 4`)
	if got := browsertest.Eval[string](p, `[...document.querySelectorAll(".tokens span")].map((e) => e.title).join("; ")`); !strings.HasPrefix(got, "token 11, logprob -0.01, version 1, mask 1; trainer: logprob -0.02, entropy 0.5; token 12") || !strings.HasSuffix(got, "token 21, mask 0") {
		t.Errorf("tokens: %s", got)
	}
	// Another trajectory of the database, of which the record tells something else.
	p.Go("/run/hand/t/0.2.0.1.202")
	p.Await(`document.querySelector("aside").innerText.includes("another trajectory lies there")`)
	well(t, p, "trajectory")
}

func testSQL(t *testing.T, p *browsertest.Page) {
	p.Go("/sql?q=" + url.QueryEscape("SELECT step, count() AS n FROM trajectories WHERE run_id = 'hand' GROUP BY step ORDER BY step"))
	p.Do(click("button.primary"))
	p.Await(`document.querySelector("table[aria-label=Answer]") !== null`)
	if got := browsertest.Eval[string](p, `[...document.querySelectorAll("table[aria-label=Answer] td")].map((e) => e.innerText).join(" ")`); got != "1 4 2 6" {
		t.Errorf("the answer is %q", got)
	}
	well(t, p, "SQL")
	p.Go("/sql?q=" + url.QueryEscape("SELECT * FROM url('http://127.0.0.1:1/', 'CSV')"))
	p.Do(click("button.primary"))
	p.Await(`document.querySelector(".failure")?.innerText.includes("Not enough privileges")`)
}

// Pictures for docs/, of the pages at the address SLUICE_PAGES: of the run that began first
// there, and of two that can be compared.
func TestPictures(t *testing.T) {
	base := os.Getenv("SLUICE_PAGES")
	if base == "" {
		t.Skip("SLUICE_PAGES names no pages to take pictures of")
	}
	browser := browsertest.Start(t)
	first := browser.Open(t, base, browsertest.Screens[0])
	first.Go("/")
	runs := browsertest.Eval[[]string](first, `[...document.querySelectorAll("tbody td:first-child a")].map((e) => e.innerText)`)
	if len(runs) < 2 {
		t.Fatalf("runs %v, want two to compare", runs)
	}
	run, other := runs[len(runs)-1], runs[0]
	first.Go("/run/" + url.PathEscape(run) + "/trajectories?outcome=error&correct=1")
	first.Do(click("tbody a"))
	first.Settle()
	place := first.Path()[strings.LastIndex(first.Path(), "/")+1:]
	first.Do(click(".siblings a[title^=side]"))
	first.Settle()
	beside := first.Path()[strings.LastIndex(first.Path(), "/")+1:]
	dir := os.Getenv("SLUICE_PICTURES")
	if dir == "" {
		dir = "docs"
	}
	for _, screen := range browsertest.Screens {
		if screen.Phone != screen.Dark && os.Getenv("SLUICE_PICTURES") == "" {
			continue // docs/ has the desktop by day and the phone by night
		}
		p := browser.Open(t, base, screen)
		for _, page := range pagesOf(run, place, beside, "strict") {
			p.Go(strings.ReplaceAll(page[1], "run="+uitest.Run, "run="+url.QueryEscape(other)))
			if page[0] == "sql" {
				p.Go("/sql")
				p.Do(click("button.primary"))
				p.Await(`document.querySelector("table[aria-label=Answer]") !== null`)
			}
			well(t, p, page[0])
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%s.png", page[0], screen.Name)), p.Picture(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}
