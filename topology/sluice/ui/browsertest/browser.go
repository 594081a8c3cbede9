// Package browsertest drives pages in a headless Chromium for tests, and says what a page
// did that it should not: scripts that failed, errors in its console, requests elsewhere.
//
// Without a Chromium tests skip and say so; with CI set in the environment they fail.
package browsertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Screen is the size of a window and its colours.
type Screen struct {
	Name          string
	Width, Height int64
	Phone, Dark   bool
}

// Screens are those that every page is driven at.
var Screens = []Screen{
	{"desktop", 1280, 860, false, false},
	{"desktop-dark", 1280, 860, false, true},
	{"phone", 390, 844, true, false},
	{"phone-dark", 390, 844, true, true},
}

// Browser is a running Chromium.
type Browser struct {
	ctx context.Context
}

// Start starts a Chromium that ends with the test.
func Start(t testing.TB) *Browser {
	t.Helper()
	path := os.Getenv("SLUICE_CHROMIUM")
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path == "" {
			path, _ = exec.LookPath(name)
		}
	}
	if path == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("no chromium: make chromium installs it")
		}
		t.Skip("no chromium: make chromium installs it")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()))
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, end := chromedp.NewContext(ctx)
	t.Cleanup(func() { end(); stop() })
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	return &Browser{ctx}
}

// Page is a tab.
type Page struct {
	t    testing.TB
	ctx  context.Context
	base string

	mu    sync.Mutex
	wrong []string
}

// Open opens a tab for pages below base, of which every request must be.
func (b *Browser) Open(t testing.TB, base string, s Screen) *Page {
	t.Helper()
	ctx, end := chromedp.NewContext(b.ctx)
	ctx, stop := context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(func() { stop(); end() })
	p := &Page{t: t, ctx: ctx, base: base}
	scheme := "light"
	if s.Dark {
		scheme = "dark"
	}
	_, errs1 := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	_, errs2 := chromedp.Call(ctx, log.Enable, cdp.Empty{})
	_, errs3 := chromedp.Call(ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: s.Width, Height: s.Height, DeviceScaleFactor: 1, Mobile: s.Phone})
	_, errs4 := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
	if err := errors.Join(errs1, errs2, errs3, errs4, chromedp.Listen(ctx, p.heard)); err != nil {
		t.Fatal(err)
	}
	return p
}

// heard notes what should not happen.
func (p *Page) heard(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, p.base) {
			p.wrong = append(p.wrong, "asked for "+e.Request.URL)
		}
	case *runtime.EventExceptionThrown:
		p.wrong = append(p.wrong, "script failed: "+said(e.ExceptionDetails))
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" || e.Type == "assert" {
			p.wrong = append(p.wrong, fmt.Sprintf("console %s: %s", e.Type, args(e.Args)))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == "error" || e.Entry.Level == "warning" {
			p.wrong = append(p.wrong, fmt.Sprintf("console %s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
		}
	case *page.EventJavascriptDialogOpening:
		p.wrong = append(p.wrong, "a script opened a dialog: "+e.Message)
	}
}

func said(e *runtime.ExceptionDetails) string {
	if e.Exception != nil {
		return e.Text + " " + e.Exception.Description
	}
	return e.Text
}

func args(all []*runtime.RemoteObject) string {
	var parts []string
	for _, a := range all {
		parts = append(parts, strings.TrimSpace(fmt.Sprint(a.Value)+" "+a.Description))
	}
	return strings.Join(parts, " ")
}

// Go opens an address below base and waits until nothing is loading.
func (p *Page) Go(path string) {
	p.t.Helper()
	p.Do(chromedp.Navigate(p.base + path))
	p.Settle()
}

// settled says whether a page has drawn what it waits for.
const settled = `document.querySelector("main") !== null && document.querySelector(".loading") === null && document.querySelector(".boot") === null`

// GoSoon opens an address below base and returns as soon as nothing is loading.
func (p *Page) GoSoon(path string) {
	p.t.Helper()
	p.Do(chromedp.Navigate(p.base + path))
	p.Await(settled)
}

// Settle waits until nothing is loading.
func (p *Page) Settle() {
	p.t.Helper()
	p.Await(settled)
	time.Sleep(150 * time.Millisecond) // a frame or two, for charts to be drawn
}

// Await waits until an expression is true.
func (p *Page) Await(expression string) {
	p.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		done, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool](expression))
		if done && err == nil {
			return
		}
		if p.ctx.Err() != nil || time.Now().After(deadline) {
			text, _ := chromedp.Run(p.ctx, chromedp.Evaluate[string](`document.body.innerText.slice(0, 2000)`))
			p.t.Fatalf("%s: never true (%v); the page says:\n%s\nand did: %s", expression, err, text, strings.Join(p.Wrong(), "\n"))
		}
	}
}

// Do does something in the tab.
func (p *Page) Do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, actions...); err != nil {
		p.t.Fatal(err)
	}
}

// Eval is what an expression is in the tab.
func Eval[T any](p *Page, expression string) T {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// Press presses keys, as somebody at a keyboard does.
func (p *Page) Press(keys string) {
	p.t.Helper()
	p.Do(chromedp.KeyEvent(keys))
	time.Sleep(60 * time.Millisecond)
}

// Text is what the page shows in an element.
func (p *Page) Text(selector string) string {
	p.t.Helper()
	return Eval[string](p, fmt.Sprintf("document.querySelector(%q)?.innerText ?? %q", selector, "(no "+selector+")"))
}

// Path is the tab's address below base.
func (p *Page) Path() string {
	p.t.Helper()
	return strings.TrimPrefix(Eval[string](p, "location.href"), p.base)
}

// Wider says by how many pixels the page is wider than its window, and what is.
func (p *Page) Wider() (by float64, what string) {
	p.t.Helper()
	return Eval[float64](p, `document.documentElement.scrollWidth - document.documentElement.clientWidth`),
		Eval[string](p, `[...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1 && !e.closest(".scroll, nav, .tokens") && e.clientWidth > 0).slice(0, 5).map((e) => e.tagName + "." + e.className).join(" ")`)
}

// Picture is what the window shows, as PNG.
func (p *Page) Picture() []byte {
	p.t.Helper()
	b, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatal(err)
	}
	return b
}

// Wrong is what the page did that it should not, since it was asked last.
func (p *Page) Wrong() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	wrong := p.wrong
	p.wrong = nil
	return wrong
}
