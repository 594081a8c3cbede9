package main

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify"
	"github.com/sluice-rl/sluice/topology/process"
)

func TestCommands(t *testing.T) {
	pairs := `{"id":1,"gold":["7",8],"pred":"\\boxed{8\\text{ cm}}"}` + "\n"
	for name, c := range map[string]struct {
		args  []string
		stdin string
		want  string // in standard output
		err   error
	}{
		"check":                  {[]string{"check"}, pairs, `"id":1,"verdict":"equal"`, nil},
		"check strictly":         {[]string{"check", "--strict"}, pairs, `"verdict":"undecided"`, nil},
		"check with targets":     {[]string{"check", "--pred-from", "formula"}, pairs, `"verdict":"different"`, nil},
		"check a broken line":    {[]string{"check"}, "{\n" + pairs, `"error":"line 1: `, errLines},
		"unknown targets":        {[]string{"check", "--gold-from", "boxes"}, pairs, "", process.ErrUsage},
		"unknown profile":        {[]string{"check", "--profile", "lax"}, pairs, "", process.ErrUsage},
		"compare equal":          {[]string{"compare", `\frac12`, "0.5"}, "", "equal: ", nil},
		"compare to 2 decimals":  {[]string{"compare", "--decimals", "2", `\pi`, "3.14"}, "", "equal: ", nil},
		"compare different":      {[]string{"compare", "1", "2"}, "", "different: ", errNotEqual},
		"compare one text":       {[]string{"compare", "1"}, "", "", process.ErrUsage},
		"an unfinished thought":  {[]string{"compare", "--thought-must-end", "4", `<think>\boxed{4}`}, "", "different: ", errNotEqual},
		"extract":                {[]string{"extract", `so \boxed{4}`}, "", "4\n", nil},
		"help names the options": {[]string{"check", "--help"}, "", "--set-against-inequality", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			err := process.Execute(program(), process.System{Args: c.args, Stdin: strings.NewReader(c.stdin), Stdout: &stdout, Stderr: &stderr})
			if !errors.Is(err, c.err) || (err != nil) != (c.err != nil) {
				t.Errorf("error %v, want %v", err, c.err)
			}
			if !strings.Contains(stdout.String(), c.want) {
				t.Errorf("standard output %q, want %q in it", stdout.String(), c.want)
			}
		})
	}
}

func TestServe(t *testing.T) {
	server := httptest.NewServer(handler(mathverify.Options{}))
	defer server.Close()
	res, err := http.Post(server.URL, "application/x-ndjson", strings.NewReader(`{"id":1,"gold":"7","pred":"7 or 8"}`+"\n"+`{"id":2,"gold":7,"pred":"seven"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 200 || !strings.Contains(string(body), `"id":1,"verdict":"different"`) || !strings.Contains(string(body), `"id":2,"verdict":"equal"`) {
		t.Errorf("status %d, %v: %s", res.StatusCode, err, body)
	}
}
